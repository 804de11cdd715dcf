"""Cuts long texts into chunks, if possible where paragraphs, sentences or words end."""

import re
from dataclasses import dataclass

from caraway_search.errors import InvalidSearchError

_ENDS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"[.!?\u2026]+[\"'\u201d\u2019)\]]*\s|[\u3002\uff01\uff1f]"),
    re.compile(r"\n"),
    re.compile(r"\s"),
)
"""Where a chunk may end, best first: after a paragraph, a sentence, a line, a word."""
_LATEST_START = 0.5
"""A chunk ends at the best place in the last part of its room; the first part is always used."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a text, from character `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TextCutter:
    """Cuts texts into parts of at most `target_size` characters.

    Each begins `overlap_size` characters before the end of the last, or a little later, where a
    word begins. With `trims_whitespace` no part begins or ends with white space, and parts of
    nothing else are left out.
    """

    target_size: int = 512
    overlap_size: int = 0
    trims_whitespace: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.overlap_size < self.target_size:
            raise InvalidSearchError(
                f"chunks of {self.target_size} characters cannot overlap by {self.overlap_size}"
            )

    def parts(self, text: str) -> list[TextPart]:
        """The parts of a text, in its order; an empty text has none."""
        parts: list[TextPart] = []
        start = 0
        while start < len(text):
            end = self._end(text, start)
            part = self._trimmed(text, start, end) if self.trims_whitespace else (start, end)
            if parts and part[0] <= parts[-1].start < part[1]:
                parts.pop()  # all of it is in this part, because white space was between the starts
            if part[0] < part[1] and (not parts or part[1] > parts[-1].end):
                parts.append(TextPart(*part))
            if end == len(text):
                break
            start = self._next_start(text, start, end)
        return parts

    def _end(self, text: str, start: int) -> int:
        latest = start + self.target_size
        if latest >= len(text):
            return len(text)
        # An end before this would leave no room that is new, because of the overlap.
        earliest = start + max(int(self.target_size * _LATEST_START), self.overlap_size + 1)
        for pattern in _ENDS:
            ends = [match.end() for match in pattern.finditer(text, earliest - 1, latest + 1)]
            if ends and ends[-1] > latest and not text[latest].isspace():
                ends.pop()
            if ends:
                return min(ends[-1], latest)
        return latest

    def _next_start(self, text: str, start: int, end: int) -> int:
        if self.overlap_size == 0:
            return end
        begin = max(end - self.overlap_size, start + 1)
        if text[begin - 1].isspace():
            return begin
        space = re.compile(r"\s+").search(text, begin, end)
        return space.end() if space and space.end() < end else begin

    def _trimmed(self, text: str, start: int, end: int) -> tuple[int, int]:
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        return start, end
