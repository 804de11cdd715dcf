"""Files of tables: of data, and of the rows of others that are deleted."""

from __future__ import annotations

from dataclasses import dataclass, field

from caraway_core.releases.protocol_versions import growing
from caraway_core.tables import StoreSpec, TableSplit
from caraway_plugins.sources.iceberg.columns import OwnField

Constants = tuple[tuple[int, object], ...]
"""Values of columns that all rows of a file share, and that are not in it, by the column's id."""


@dataclass(frozen=True, slots=True)
class VectorPlace:
    """Where a file has a vector of deleted rows, and how many rows these are."""

    start: int
    size_bytes: int
    count: int


@growing
@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file of deleted rows: of positions, or with `ids` of values that those rows have."""

    path: str
    size_bytes: int
    store: StoreSpec | None
    ids: tuple[int, ...] = ()
    vector: VectorPlace | None = None
    """Positions in a file that has no columns."""


@dataclass(frozen=True, slots=True)
class IcebergFile(TableSplit):
    """A data file, and where its deleted rows are. `location` is its name in those files."""

    path: str
    size_bytes: int = field()
    store: StoreSpec | None
    location: str
    row_count: int
    columns: tuple[OwnField, ...]
    constants: Constants = ()
    bounds: tuple[tuple[int, bytes | None, bytes | None], ...] = ()
    deletes: tuple[DeleteFile, ...] = ()

    @property
    def name(self) -> str:
        return self.location
