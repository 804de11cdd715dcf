"""Reports chunks that a statement reads but that are not in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from datafusion.catalog import Table

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import StoredTable


@dataclass(frozen=True, slots=True)
class MissingChunks:
    """Chunks of a dataset that are not in memory."""

    table: TableName
    spec: StoredTable
    chunks: tuple[ChunkInfo, ...]


class ChunksAwayError(CarawayError):
    """A statement reads chunks that are not in memory; load them, and start it again."""

    def __init__(self, wanted: Sequence[MissingChunks]) -> None:
        names = ", ".join(f"'{each.table}'" for each in wanted)
        super().__init__(f"rows of dataset {names} are not in memory; start the statement again")
        self.wanted = tuple(wanted)


def check_present(found: Iterable[Table | MissingChunks | None]) -> None:
    """Check that nothing is missing.

    Raises:
        ChunksAwayError: chunks are missing.
    """
    if chunks := [each for each in found if isinstance(each, MissingChunks)]:
        raise ChunksAwayError(chunks)
