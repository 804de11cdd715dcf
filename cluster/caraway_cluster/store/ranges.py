"""Which part of a chunk is asked for."""

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes from `start` up to, and without, `end`."""

    start: int
    end: int
    is_whole: bool = False


def parse(header: str, size: int) -> Part | None:
    """Read a Range of one part; None if it begins behind the end.

    What is not understood, such as several parts, asks for everything, as HTTP has it.
    """
    found = _RANGE.fullmatch(header.replace(" ", ""))
    if found is None or not (found[1] or found[2]):
        return Part(0, size, is_whole=True)
    first, last = found[1], found[2]
    if not first:
        length = min(int(last), size)
        return Part(size - length, size) if length else None
    start, end = int(first), min(int(last) + 1, size) if last else size
    if last and int(last) < start:
        return Part(0, size, is_whole=True)
    return Part(start, end) if start < size else None
