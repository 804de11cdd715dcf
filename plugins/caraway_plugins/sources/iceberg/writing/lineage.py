"""The lineage of rows from version 3 of the format on: the id of each, and what changed it last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.protocols.remote import FILE, POSITION
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.iceberg.column_types import IcebergField
from caraway_plugins.sources.iceberg.scanning import IcebergScanner, PlacedIcebergTable

_ID = IcebergField(2147483540, "_row_id", "long")
_CHANGED = IcebergField(2147483539, "_last_updated_sequence_number", "long")
FIELDS = (_ID, _CHANGED)
"""Columns of data files beyond those of the table."""
NAMES = tuple(each.name for each in FIELDS)
_FIRST = 3
_NO_ID = -1


def is_kept(version: int) -> bool:
    """Return whether tables of a version of the format keep the lineage of rows."""
    return version >= _FIRST


class RowLineage:
    """The lineage of the rows of a snapshot."""

    def __init__(self, placed: PlacedIcebergTable) -> None:
        columns = [pa.field(name, pa.int64()) for name in NAMES]
        schema = pa.schema([*placed.schema, *columns])
        self._placed = replace(placed, schema=schema, fields=(*placed.fields, *FIELDS))
        self._files = {each.location: each for each in placed.files}
        self._stored: dict[str, np.ndarray] = {}

    def changed(self, rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """Return changed rows, which have the places of those before, with the ids of these.

        The number of the change is not known before it is committed.
        """
        files = rows.column(FILE).dictionary_encode()
        codes = files.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        positions = rows.column(POSITION).fill_null(0).to_numpy(zero_copy_only=False)
        ids = np.full(rows.num_rows, _NO_ID)
        for code, location in enumerate(files.dictionary.to_pylist()):
            ids[codes == code] = self._ids(location, positions[codes == code])
        return _with(rows, names, pa.array(ids, mask=ids == _NO_ID), pa.nulls(len(ids), pa.int64()))

    def unchanged(
        self, locations: Sequence[str], names: Sequence[str]
    ) -> Iterator[tuple[str, np.ndarray, pa.RecordBatch]]:
        """Yield the rows of files with all that is known of them: the file, positions and rows."""
        files = tuple(self._files[each] for each in locations)
        request = RowRequest([*names, *NAMES, FILE, POSITION])
        for batch in IcebergScanner().scan(replace(self._placed, files=files), request):
            if not batch.num_rows:
                continue  # All of its rows are deleted already.
            location = batch.column(FILE)[0].as_py()
            listed = self._placed.listed[location]
            positions = batch.column(POSITION)
            ids, changed = (batch.column(name) for name in NAMES)
            if listed.first_row_id is not None:
                ids = pc.coalesce(ids, pc.add(positions, listed.first_row_id))
            changed = pc.fill_null(changed, listed.sequence_number)
            yield location, positions.to_numpy(), _with(batch, names, ids, changed)

    def _ids(self, location: str, positions: np.ndarray) -> np.ndarray:
        first = self._placed.listed[location].first_row_id
        ids = np.full(len(positions), _NO_ID) if first is None else positions + first
        stored = self._stored_ids(location)
        if stored is None:
            return ids
        return np.where(stored[positions] == _NO_ID, ids, stored[positions])

    def _stored_ids(self, location: str) -> np.ndarray | None:
        """Return the ids that a file has by position; None: it has none, as after an append."""
        file = self._files[location]
        if all(each.id != _ID.id for each in file.columns):
            return None
        if location not in self._stored:
            ids = np.full(file.row_count, _NO_ID)
            only = replace(self._placed, files=(file,))
            for batch in IcebergScanner().scan(only, RowRequest([_ID.name, POSITION])):
                ids[batch.column(POSITION).to_numpy()] = (
                    batch.column(0).fill_null(_NO_ID).to_numpy()
                )
            self._stored[location] = ids
        return self._stored[location]


def _with(
    rows: pa.RecordBatch, names: Sequence[str], ids: pa.Array, changed: pa.Array
) -> pa.RecordBatch:
    columns = [*(rows.column(name) for name in names), ids, changed]
    return pa.RecordBatch.from_arrays(columns, [*names, *NAMES])
