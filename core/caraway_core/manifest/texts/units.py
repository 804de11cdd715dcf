"""Durations and sizes as people write them."""

import math
import re

from caraway_core.manifest.texts import scalars

_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
_BYTES = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate("kmgtp", start=1)},
    **{f"{unit}i": 1024**power for power, unit in enumerate("kmgtp", start=1)},
}
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,9})?"
_DURATION_PART = re.compile(rf"({_NUMBER})\s*([a-zµ]+)\s*")
_SIZE = re.compile(rf"({_NUMBER})\s*([kmgtp]i?|)b?")
_MAX_SECONDS = 100 * 365 * 86400.0
_MAX_BYTES = 1 << 60
_LONGEST_SHOWN = 60


def seconds(value: object) -> float:
    """Read a duration: `30s`, `1h30m`, `250ms`, or a plain number of seconds.

    Raises:
        ValueError: it is none of these.
    """
    text = _text(value)
    total = float(text) if re.fullmatch(_NUMBER, text) else _sum_of_parts(text)
    if total is None:
        shown = _shown(value)
        raise ValueError(f"'{shown}' is not a duration; write for example 30s, 5m or 1h30m")
    if not math.isfinite(total) or total > _MAX_SECONDS:
        raise ValueError(f"'{_shown(value)}' is longer than 100 years")
    return total


def size_bytes(value: object) -> int:
    """Read a size: `128MiB`, `1GB`, `512k` (512,000), or a plain number of bytes.

    Raises:
        ValueError: it is none of these.
    """
    match = _SIZE.fullmatch(_text(value))
    if match is None:
        raise ValueError(f"'{_shown(value)}' is not a size; write for example 128MiB, 2GB or 65536")
    total = float(match[1]) * _BYTES[match[2]]
    if total > _MAX_BYTES:
        raise ValueError(f"'{_shown(value)}' is more than 1 EiB")
    return int(match[1]) * _BYTES[match[2]] if match[1].isdigit() else int(total)


def _text(value: object) -> str:
    # A boolean is an int in Python, but 'true' is no duration. A number counts as it was written:
    # params are texts where they are used, and there 1e5 must not become something else.
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return scalars.written(value).strip().lower()


def _shown(value: object) -> str:
    text = scalars.written(value) if isinstance(value, str | int | float) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _sum_of_parts(text: str) -> float | None:
    total, end = 0.0, 0
    for match in _DURATION_PART.finditer(text):
        if match.start() != end or match[2] not in _SECONDS:
            return None
        total += float(match[1]) * _SECONDS[match[2]]
        end = match.end()
    return total if text and end == len(text) else None
