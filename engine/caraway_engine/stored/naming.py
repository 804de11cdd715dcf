"""What a version can be dealt out by: its pieces, and their names."""

from collections import Counter
from collections.abc import Sequence

from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import StoredTable
from caraway_engine import entries
from caraway_engine.shares import ListedFile


def pieces(spec: StoredTable) -> tuple[ListedFile, ...]:
    """List what of a version can be dealt out: its partitions, or its chunks if it is not cut."""
    return tuple(
        ListedFile(
            name,
            sum(each.size_bytes for each in chunks),
            is_splittable=False,
            is_kept=True,
            home=_home(chunks),
        )
        for name, chunks in by_name(spec).items()
    )


def by_name(spec: StoredTable) -> dict[str, tuple[ChunkInfo, ...]]:
    """Return the chunks of each piece, in the order of the rows."""
    if not spec.cut.terms:
        return {name: (each,) for name, each in _named(spec.chunks).items()}
    parts: dict[str, list[ChunkInfo]] = {name: [] for name in entries.buckets(spec) or ()}
    for each in spec.chunks:
        parts.setdefault(each.partition, []).append(each)
    return {name: tuple(chunks) for name, chunks in parts.items()}


def _home(chunks: Sequence[ChunkInfo]) -> str:
    """Say who made them, if that was one."""
    homes = {each.home for each in chunks}
    return homes.pop() if len(homes) == 1 else ""


def _named(chunks: Sequence[ChunkInfo]) -> dict[str, ChunkInfo]:
    """Name chunks by what they hold, in each version alike; equal ones are in a table twice."""
    named: dict[str, ChunkInfo] = {}
    seen: Counter[str] = Counter()
    for each in chunks:
        again = seen[each.sha256]
        named[f"{each.sha256}.{again}" if again else each.sha256] = each
        seen[each.sha256] += 1
    return named
