"""What is not in memory: how whoever reads it is told so."""

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
    """A statement reads chunks that are not in memory; bring them, and start it again."""

    def __init__(self, wanted: Sequence[MissingChunks]) -> None:
        names = ", ".join(f"'{each.table}'" for each in wanted)
        super().__init__(f"rows of dataset {names} are not in memory; start the statement again")
        self.wanted = tuple(wanted)


def check_present(found: Iterable[Table | MissingChunks | None]) -> None:
    """Look whether anything is missing.

    Raises:
        ChunksAwayError: something is.
    """
    if wanted := [each for each in found if isinstance(each, MissingChunks)]:
        raise ChunksAwayError(wanted)
