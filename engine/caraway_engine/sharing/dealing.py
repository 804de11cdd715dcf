"""Divides tables into pieces and assigns the pieces to owners. Pure; importing it loads no engine.

The pieces of an accelerated dataset's version are its partitions, or its chunks if it has none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from caraway_core.ids import ExecutorId
from caraway_core.partitions import matching
from caraway_core.pieces import Piece
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import StoredTable, TableSpec
from caraway_engine.rows import entries
from caraway_engine.sharing import shares
from caraway_engine.sharing.shares import ListedPiece


def pieces(spec: StoredTable) -> tuple[ListedPiece, ...]:
    """List the pieces of a version: its partitions, or its chunks if it is not partitioned."""
    return tuple(
        ListedPiece(
            name,
            sum(each.size_bytes for each in chunks),
            is_splittable=False,
            is_kept=True,
            home=_home(chunks),
        )
        for name, chunks in by_name(spec).items()
    )


def by_name(spec: StoredTable) -> dict[str, tuple[ChunkInfo, ...]]:
    """Return the chunks of each piece, in row order."""
    if not spec.cut.terms:
        return {name: (each,) for name, each in _named(spec.chunks).items()}
    parts: dict[str, list[ChunkInfo]] = {name: [] for name in entries.buckets(spec) or ()}
    for each in spec.chunks:
        parts.setdefault(each.partition, []).append(each)
    return {name: tuple(chunks) for name, chunks in parts.items()}


def assign_pieces(
    spec: TableSpec | None, files: tuple[ListedPiece, ...], owners: tuple[str, ...]
) -> tuple[tuple[Piece, ...], ...]:
    """Assign all pieces of a table to its owners."""
    return shares.assign_pieces(files, owners, _buckets(spec, files))


def holders(
    spec: StoredTable, owners: Sequence[ExecutorId], replicas: int = 1
) -> Mapping[str, tuple[ExecutorId, ...]]:
    """Return the executors that have each piece of a version, preferred executor first."""
    listed_pieces = pieces(spec)
    names = tuple(map(str, owners))
    if not names:
        return {each.name: () for each in listed_pieces}
    count = _buckets(spec, listed_pieces)
    if count is not None:
        ranks = shares.ranked(count, names, replicas)
        return {
            each.name: tuple(owners[number] for number in ranks[bucket])
            for bucket, each in enumerate(listed_pieces)
        }
    assigned = shares.place(listed_pieces, names)
    return {
        piece.name: (owner,)
        for owner, share in zip(owners, assigned, strict=True)
        for piece in share
    }


def _buckets(spec: TableSpec | None, files: Sequence[ListedPiece]) -> int | None:
    """Return the number of buckets if the table is placed by bucket alone, else None."""
    version = spec.version if spec is not None else None
    if version is None or matching.colocation(version.cut, version.schema) is None:
        return None
    return len(files)


def _home(chunks: Sequence[ChunkInfo]) -> str:
    """Return the executor that made all of the chunks, or "" if there were several."""
    homes = {each.home for each in chunks}
    return homes.pop() if len(homes) == 1 else ""


def _named(chunks: Sequence[ChunkInfo]) -> dict[str, ChunkInfo]:
    """Name chunks by content hash, so that names are stable across versions; number duplicates."""
    named: dict[str, ChunkInfo] = {}
    seen: Counter[str] = Counter()
    for each in chunks:
        again = seen[each.checksum]
        named[f"{each.checksum}.{again}" if again else each.checksum] = each
        seen[each.checksum] += 1
    return named
