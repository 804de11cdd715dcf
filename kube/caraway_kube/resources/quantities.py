"""Quantities of CPU and memory in the notation of Kubernetes, with exact arithmetic."""

import math
import re
from decimal import Decimal, InvalidOperation

PATTERN = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$"
"""The pattern of Kubernetes without a sign, because no quantity here can be negative."""
MAX_LENGTH = 32
MIB = 1024 * 1024

_PARTS = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(.*)")
_FACTORS = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}


def number(quantity: str | int) -> Decimal:
    """Parse a quantity, such as `500m`, `1.5`, `2Gi` or `1e3`.

    Raises:
        ValueError: the text is not a quantity.
    """
    text = str(quantity)
    if not re.fullmatch(PATTERN.strip("^$"), text) or len(text) > MAX_LENGTH:
        raise ValueError(f"'{text}' is not a quantity; write for example 500m, 2 or 4Gi")
    match = _PARTS.fullmatch(text)
    assert match is not None
    if (factor := _FACTORS.get(match[2])) is not None:
        return Decimal(match[1]) * factor
    try:
        return Decimal(text)
    except InvalidOperation as exc:
        raise ValueError(f"'{text}' is not a quantity; write for example 500m, 2 or 4Gi") from exc


def whole_mebibytes(quantity: str | int) -> int:
    """Return the memory in whole MiB, rounded down."""
    return int(number(quantity) // MIB)


def whole_cores(quantity: str | int) -> int:
    """Return the CPU in whole cores, rounded up; at least 1."""
    return max(1, math.ceil(number(quantity)))


def canonical(quantity: str | int) -> str:
    """Return a quantity in the form of the API server, so that it equals the stored one.

    Raises:
        ValueError: the text is not a quantity.
    """
    value, text = number(quantity), str(quantity)
    if text.endswith("i") and value == value.to_integral_value():
        return _with_unit(int(value), 1024, "KMGTPE", "i")
    if value == value.to_integral_value():
        return _with_unit(int(value), 1000, "kMGTPE", "")
    for unit, factor in (("m", 1000), ("u", 10**6), ("n", 10**9)):
        if (scaled := value * factor) == scaled.to_integral_value():
            return f"{int(scaled)}{unit}"
    return text


def _with_unit(value: int, base: int, units: str, suffix: str) -> str:
    unit = ""
    for each in units:
        if not value or value % base:
            break
        value, unit = value // base, each + suffix
    return f"{value}{unit}"
