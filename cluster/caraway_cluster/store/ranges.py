"""Parses Range headers."""

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `start` up to but not including `end`."""

    start: int
    end: int
    is_whole: bool = False


def parse_range(header: str, size: int) -> ByteRange | None:
    """Parse a Range header with one range; None if the range starts after the end.

    An invalid header, or one with several ranges, selects all bytes, as RFC 9110 allows.
    """
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or not (match[1] or match[2]):
        return ByteRange(0, size, is_whole=True)
    first, last = match[1], match[2]
    if not first:
        length = min(int(last), size)
        return ByteRange(size - length, size) if length else None
    start, end = int(first), min(int(last) + 1, size) if last else size
    if last and int(last) < start:
        return ByteRange(0, size, is_whole=True)
    return ByteRange(start, end) if start < size else None
