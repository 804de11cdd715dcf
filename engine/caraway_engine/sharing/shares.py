"""Divides the files of a table among the tasks that read it together. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from caraway_core.pieces import FileRange, Piece, SplitPiece, StoredPiece
from caraway_core.tables import TableSplit

_NEARLY_EVEN = 1.2
"""Files are split only if the largest share exceeds the mean by more than this factor."""
_LOAD_BOUND = 1.05
_KEPT_ASSIGNMENTS = 256
_NUMBERED = re.compile(r"(.*?)([0-9]{1,6})")
_SPARSE = 2
_AT_HOME = 2**64
"""Higher than any score."""


@dataclass(frozen=True, slots=True)
class ListedPiece:
    """A file that a table is read from; `is_splittable` says whether tasks can read ranges of it.

    If `is_kept`, executors keep what they read of it in memory. `home` is the executor that made
    it.
    """

    name: str
    size_bytes: int
    is_splittable: bool
    is_kept: bool = False
    home: str = ""
    split: TableSplit | None = None


def divide_files(files: Sequence[ListedPiece], count: int) -> tuple[tuple[Piece, ...], ...]:
    """Divide the bytes of the files into `count` shares of similar size.

    Whole files are assigned if that is nearly even, because they are cheaper to read. Otherwise the
    unsplittable files are assigned first, largest first, each to the smallest share. The other
    files then fill the remaining space in order, so that few of them are split.
    """
    shares, sizes = _evenly_divided(files, count)
    if max(sizes) * count <= sum(sizes) * _NEARLY_EVEN:
        return tuple(map(tuple, shares))
    shares, sizes = _evenly_divided([file for file in files if not file.is_splittable], count)
    fill([file for file in files if file.is_splittable], shares, sizes)
    return tuple(map(tuple, shares))


@lru_cache(maxsize=_KEPT_ASSIGNMENTS)
def place(files: tuple[ListedPiece, ...], owners: tuple[str, ...]) -> tuple[tuple[Piece, ...], ...]:
    """Assign whole files to owners so that each file keeps its owner, as far as the load allows.

    A file goes to the executor that made it, or else to its owner by rendezvous hashing. When an
    owner joins or leaves, other owners change only by its part. A full owner passes files on to the
    next in rank. No share exceeds the mean by more than one file.
    """
    shares: list[list[ListedPiece]] = [[] for _ in owners]
    rooms = [sum(file.size_bytes for file in files) / len(owners) * _LOAD_BOUND] * len(owners)
    ranked = [(_ranks(file.name, owners, file.home), file) for file in files]
    turned_away = []
    # Strongest preference first, so that the files turned away lose least by moving.
    for ranks, file in sorted(ranked, key=lambda each: (-each[0][0][0], each[1].name)):
        best = ranks[0][1]
        if rooms[best] < file.size_bytes:
            turned_away.append((ranks, file))
            continue
        rooms[best] -= file.size_bytes
        shares[best].append(file)
    # Only after all first choices are placed, so that these files displace none of them.
    for ranks, file in turned_away:
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


@lru_cache(maxsize=_KEPT_ASSIGNMENTS)
def place_buckets(count: int, owners: tuple[str, ...]) -> tuple[int, ...]:
    """Return the owner of each bucket as an index, from the owners' names alone.

    All datasets with the same number of buckets are therefore placed alike, whatever their size.
    Owners with numbered names, as in a StatefulSet, move as few buckets as possible. A new owner
    takes only its part, and only the buckets of a lost owner are spread over the others. Bucket
    counts differ by at most one, except for the buckets of missing numbers, which are placed by
    hash. Owners without numbers move slightly more.
    """
    numbers = _numbers(owners)
    if numbers is None:
        return _by_score(count, owners)
    placed = _in_turn(count, max(numbers) + 1)
    present = {number: position for position, number in enumerate(numbers)}
    return tuple(
        present[number] if number in present else present[_best(bucket, numbers)]
        for bucket, number in enumerate(placed)
    )


@lru_cache(maxsize=_KEPT_ASSIGNMENTS)
def ranked(count: int, owners: tuple[str, ...], replicas: int) -> tuple[tuple[int, ...], ...]:
    """Return for each bucket its owner, followed by the owners that would take over in turn."""
    first = place_buckets(count, owners)
    if replicas <= 1 or len(owners) == 1:
        return tuple((owner,) for owner in first)
    others = {}
    for owner in set(first):
        left = (*owners[:owner], *owners[owner + 1 :])
        others[owner] = ranked(count, left, replicas - 1)
    return tuple(
        (owner, *(next_ + (next_ >= owner) for next_ in others[owner][bucket]))
        for bucket, owner in enumerate(first)
    )


def _numbers(owners: Sequence[str]) -> list[int] | None:
    """Return the numbers that end otherwise equal names, or None if the names differ."""
    found = [_NUMBERED.fullmatch(owner) for owner in owners]
    if not all(found) or len({each[1] for each in found if each}) > 1:
        return None
    numbers = [int(each[2]) for each in found if each]
    # With most numbers missing, most buckets would belong to missing owners.
    is_dense = max(numbers) < _SPARSE * (len(numbers) + 1)
    return numbers if is_dense and len(set(numbers)) == len(numbers) else None


def _best(bucket: int, numbers: Sequence[int]) -> int:
    return max(numbers, key=lambda number: (_score(str(bucket), str(number)), number))


def _in_turn(count: int, owners: int) -> list[int]:
    """Let each owner in turn take an even part of the buckets of the owners before it."""
    held = [list(range(count))]
    for taker in range(1, owners):
        for buckets in held:
            buckets.sort(key=lambda each: (_score(str(each), str(taker)), each))
        taken = []
        for _ in range(count // (taker + 1)):
            giver = max(range(taker), key=lambda each: (len(held[each]), -each))
            taken.append(held[giver].pop())
        held.append(taken)
    placed = {bucket: owner for owner, buckets in enumerate(held) for bucket in buckets}
    return [placed[bucket] for bucket in range(count)]


def _by_score(count: int, owners: Sequence[str]) -> tuple[int, ...]:
    """Assign buckets to the highest-ranking owner with room, strongest preference first."""
    even, more = divmod(count, len(owners))
    sizes = [0] * len(owners)
    placed: dict[int, int] = {}
    pairs = (
        (_score(str(bucket), owner), bucket, number)
        for bucket in range(count)
        for number, owner in enumerate(owners)
    )
    for _, bucket, number in sorted(pairs, reverse=True):
        if bucket not in placed and sizes[number] < even + (more > 0):
            placed[bucket] = number
            sizes[number] += 1
            more -= sizes[number] > even
    return tuple(placed[bucket] for bucket in range(count))


def assign_pieces(
    files: tuple[ListedPiece, ...], owners: tuple[str, ...], buckets: int | None = None
) -> tuple[tuple[Piece, ...], ...]:
    """Divide the files or pieces of a table into a share for each owner.

    If `buckets` is given, the files are the table's buckets, in order.
    """
    if buckets is not None:
        shares: list[list[Piece]] = [[] for _ in owners]
        for file, owner in zip(files, place_buckets(buckets, owners), strict=True):
            shares[owner].append(piece(file, 0, file.size_bytes))
        return tuple(map(tuple, shares))
    if any(file.is_kept for file in files):
        return place(files, owners)
    return divide_files(files, len(owners))


def _ranks(path: str, owners: Sequence[str], home: str) -> list[tuple[int, int]]:
    scores = (
        (_score(path, owner) + (owner == home) * _AT_HOME, number)
        for number, owner in enumerate(owners)
    )
    return sorted(scores, reverse=True)


def _score(path: str, owner: str) -> int:
    return int.from_bytes(blake2b(f"{owner}/{path}".encode(), digest_size=8).digest())


def _evenly_divided(
    files: Sequence[ListedPiece], count: int
) -> tuple[list[list[Piece]], list[int]]:
    """Assign whole files, largest first, each to the smallest share."""
    shares: list[list[Piece]] = [[] for _ in range(count)]
    sizes = [0] * count
    for file in sorted(files, key=lambda each: (-each.size_bytes, each.name)):
        least = min(range(count), key=sizes.__getitem__)
        shares[least].append(piece(file, 0, file.size_bytes))
        sizes[least] += file.size_bytes
    return shares, sizes


def fill(files: Sequence[ListedPiece], shares: list[list[Piece]], sizes: Sequence[int]) -> None:
    """Assign splittable files so that all shares reach about the same size."""
    rooms = _rooms(sizes, sum(file.size_bytes for file in files))
    number = 0
    for file in sorted(files, key=lambda each: each.name):
        start = 0
        while start < file.size_bytes:
            while rooms[number] == 0:
                number += 1
            end = min(file.size_bytes, start + rooms[number])
            shares[number].append(piece(file, start, end))
            rooms[number] -= end - start
            start = end


def piece(file: ListedPiece, start: int, end: int) -> Piece:
    """Return the piece that a share has of a file, or of what cannot be divided."""
    if file.is_kept:
        return StoredPiece(file.name, file.size_bytes)
    if file.split is not None:
        return SplitPiece(file.split)
    return FileRange(file.name, start, end, file.size_bytes)


def _rooms(sizes: Sequence[int], total: int) -> list[int]:
    """Return how many of `total` more bytes each share takes; the smallest are filled first."""
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
