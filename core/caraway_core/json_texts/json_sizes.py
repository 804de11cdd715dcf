"""The number of values of a JSON text and their nesting, before a parser makes objects of them.

An empty list is 3 bytes of text and 80 bytes of memory. So a text is refused by its structure,
which C code of `bytes` counts without an object for each value. Long texts are read in pieces:
other threads go on between two of them.
"""

from collections.abc import Iterator
from itertools import accumulate

_PIECE_BYTES = 256 * 1024
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_BACKSLASH = b"\\"


class JsonTooLargeError(ValueError):
    """A JSON text has more values than are allowed."""


class JsonTooDeepError(ValueError):
    """A JSON text is nested deeper than is allowed."""


def check(text: bytes, most_values: int, most_depth: int | None = None) -> int:
    """Return at least the number of values of a text. A text that is not JSON passes.

    Raises:
        JsonTooLargeError: it has more values.
        JsonTooDeepError: it is nested deeper.
    """
    lists_and_objects = text.count(b"[") + text.count(b"{")
    # Each value is the first of a list or an object, or follows a comma, or is the whole text.
    count = 1 + lists_and_objects + text.count(b",")
    has_depth = most_depth is not None and lists_and_objects > most_depth
    if count > most_values or has_depth:
        count = 1
        depth = 0
        for piece in _structure(text):
            brackets = piece.translate(None, _NOT_BRACKETS)
            if most_depth is not None and brackets:
                depths = list(accumulate(map(_STEPS.__getitem__, brackets), initial=depth))
                depth = depths[-1]
                if max(depths) > most_depth:
                    raise JsonTooDeepError(
                        f"it is nested too deeply; at most {most_depth} levels are allowed"
                    )
            count += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
            if count > most_values:
                raise JsonTooLargeError(f"it has more than {most_values} values")
    return count


def _structure(text: bytes) -> Iterator[bytes]:
    """Yield the text outside of strings, piece by piece."""
    start, is_in_string = 0, False
    while start < len(text):
        piece = text[start : start + _PIECE_BYTES]
        start += len(piece)
        if _BACKSLASH in piece:
            if (len(piece) - len(piece.rstrip(_BACKSLASH))) % 2:
                # The character that it escapes.
                piece += text[start : start + 1]
                start += 1
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        yield b"".join(parts[is_in_string::2])
        is_in_string ^= len(parts) % 2 == 0
