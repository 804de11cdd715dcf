"""Files of a table, dealt out to the tasks that read it together. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from caraway_core.protocols.fleet import Piece

_NEARLY_EVEN = 1.2
"""The largest share may be so much larger than the mean before files are split."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file that a table is read from; `is_splittable` says whether a task can read a range."""

    path: str
    size_bytes: int
    is_splittable: bool


def cut(files: Sequence[ListedFile], count: int) -> tuple[tuple[Piece, ...], ...]:
    """Deal the bytes of the files into `count` shares that are as even as they should be.

    Whole files, which are read with less ado, if that is nearly even. Otherwise as even as the
    files allow: those that cannot be split go first, the largest first, each to the share with
    least; the others fill up what is missing, one after another, so that few of them are split.
    """
    shares, sizes = _dealt(files, count)
    if max(sizes) * count <= sum(sizes) * _NEARLY_EVEN:
        return tuple(map(tuple, shares))
    shares, sizes = _dealt([file for file in files if not file.is_splittable], count)
    fill([file for file in files if file.is_splittable], shares, sizes)
    return tuple(map(tuple, shares))


def _dealt(files: Sequence[ListedFile], count: int) -> tuple[list[list[Piece]], list[int]]:
    """Deal whole files, the largest first, each to the share with least."""
    shares: list[list[Piece]] = [[] for _ in range(count)]
    sizes = [0] * count
    for file in sorted(files, key=lambda each: (-each.size_bytes, each.path)):
        least = min(range(count), key=sizes.__getitem__)
        shares[least].append(piece(file, 0, file.size_bytes))
        sizes[least] += file.size_bytes
    return shares, sizes


def fill(files: Sequence[ListedFile], shares: list[list[Piece]], sizes: Sequence[int]) -> None:
    """Deal files that can be split, so that all shares come to about the same size."""
    rooms = _rooms(sizes, sum(file.size_bytes for file in files))
    number = 0
    for file in sorted(files, key=lambda each: each.path):
        start = 0
        while start < file.size_bytes:
            while rooms[number] == 0:
                number += 1
            end = min(file.size_bytes, start + rooms[number])
            shares[number].append(piece(file, start, end))
            rooms[number] -= end - start
            start = end


def piece(file: ListedFile, start: int, end: int) -> Piece:
    return Piece(file.path, start, end, file.size_bytes)


def _rooms(sizes: Sequence[int], total: int) -> list[int]:
    """Say how much each share takes of `total` bytes more: the smallest are filled up first."""
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    filled = len(order)
    while filled > 1 and sizes[order[filled - 1]] * filled > total + sum(
        sizes[each] for each in order[:filled]
    ):
        filled -= 1
    level, more = divmod(total + sum(sizes[each] for each in order[:filled]), filled)
    rooms = [0] * len(sizes)
    for position, each in enumerate(order[:filled]):
        rooms[each] = level + (position < more) - sizes[each]
    return rooms
