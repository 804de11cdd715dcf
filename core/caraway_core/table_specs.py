"""The base classes of every kind of table, of tables and of the parts that are read alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    # The operator checks places for results without pyarrow, which its image lacks.
    import pyarrow as pa

    from caraway_core.tables import FileScan, StoredTable


@dataclass(frozen=True, slots=True)
class TableSplit:
    """A part of a table that its reader can read alone. A kind of table extends this.

    `name` is the same for the same part each time that the table is resolved.
    """

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def size_bytes(self) -> int:
        """The size of its rows, as far as it is known."""
        return 0


class TableSpec:
    """A kind of table. A source defines its own kind as a frozen dataclass that extends this.

    The engine finds the reader of a kind by its type. All other code uses the properties below and
    never checks the type. Specs can be pickled, and equal specs are the same table. Their `repr`
    shows no secrets.
    """

    __slots__ = ()

    schema: pa.Schema

    @property
    def size_bytes(self) -> int:
        """The size of the table at its source; 0: not known."""
        return 0

    @property
    def column_bytes(self) -> Mapping[str, int]:
        """The bytes of each column at its source; empty: not known."""
        return {}

    @property
    def row_count(self) -> int | None:
        """The number of rows, as far as it is known without reading it; may be an estimate."""
        return None

    @property
    def is_external(self) -> bool:
        """True if its reader gives rows that the engine cannot read itself, and may wait for."""
        return True

    @property
    def is_shareable(self) -> bool:
        """True if several executors may read it for one query."""
        return self.is_divisible

    @property
    def is_divisible(self) -> bool:
        """True if each of several executors can read a share of it."""
        return len(self.splits) > 1

    @property
    def splits(self) -> Sequence[TableSplit]:
        """The parts that its reader can read alone; empty where there is only one."""
        return ()

    @property
    def scans(self) -> tuple[FileScan, ...]:
        """The files that the engine reads it from."""
        return ()

    @property
    def is_parquet(self) -> bool:
        """True if its rows are those of files of Parquet, which others can read."""
        return False

    @property
    def version(self) -> StoredTable | None:
        """The version of an accelerated dataset that it is."""
        return None

    @property
    def query(self) -> str | None:
        """The query that it is a name for."""
        return None

    @property
    def first_rows(self) -> pa.Table | None:
        """The first rows of a table in the memory of one executor."""
        return None

    @property
    def why_unchangeable(self) -> str:
        """Why its rows cannot be updated or deleted; empty where they can."""
        return ""

    def moved(self, places: Mapping[str, str]) -> Self:
        """Return the table with other paths of local files."""
        return self
