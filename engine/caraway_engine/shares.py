"""Files of a table, dealt out to the tasks that read it together. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from caraway_core.protocols.fleet import Piece

_NEARLY_EVEN = 1.2
"""The largest share may be so much larger than the mean before files are split."""
_LOAD_BOUND = 1.05
_KEPT_DEALS = 256


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file that a table is read from; `is_splittable` says whether a task can read a range.

    What executors have read of one that `is_kept` stays in their memory.
    """

    path: str
    size_bytes: int
    is_splittable: bool
    is_kept: bool = False


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


@lru_cache(maxsize=_KEPT_DEALS)
def place(files: tuple[ListedFile, ...], owners: tuple[str, ...]) -> tuple[tuple[Piece, ...], ...]:
    """Deal whole files so that each stays with its owner, as far as the load allows.

    By rendezvous: of another owner that comes or goes each of the others notices only its own
    part. Whoever has its part already leaves files to the next; no share is larger than the mean
    by more than a file.
    """
    shares: list[list[ListedFile]] = [[] for _ in owners]
    rooms = [sum(file.size_bytes for file in files) / len(owners) * _LOAD_BOUND] * len(owners)
    ranked = [(_ranks(file.path, owners), file) for file in files]
    # The surest first: who is turned away should be the one that hardly cares.
    for ranks, file in sorted(ranked, key=lambda each: (-each[0][0][0], each[1].path)):
        chosen = next((number for _, number in ranks if rooms[number] >= file.size_bytes), None)
        if chosen is None:
            chosen = max(range(len(owners)), key=rooms.__getitem__)
        rooms[chosen] -= file.size_bytes
        shares[chosen].append(file)
    order = {file: number for number, file in enumerate(files)}
    return tuple(
        tuple(piece(file, 0, file.size_bytes) for file in sorted(share, key=order.__getitem__))
        for share in shares
    )


def _ranks(path: str, owners: Sequence[str]) -> list[tuple[int, int]]:
    scores = ((_score(path, owner), number) for number, owner in enumerate(owners))
    return sorted(scores, reverse=True)


def _score(path: str, owner: str) -> int:
    return int.from_bytes(blake2b(f"{owner}/{path}".encode(), digest_size=8).digest())


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
