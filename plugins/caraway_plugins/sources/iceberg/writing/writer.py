"""Writes Iceberg tables: adds rows, and replaces them by their places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import DatasetError, ExecutionError
from caraway_core.protocols.remote import FILE, IS_ADDED, POSITION
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable, TableSpec
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.iceberg.added_manifests import AddedFile, WrittenSpec
from caraway_plugins.sources.iceberg import describing, opening, planning
from caraway_plugins.sources.iceberg.scanning import IcebergScanner, PlacedIcebergTable
from caraway_plugins.sources.iceberg.writing import commits, row_files, written
from caraway_plugins.sources.iceberg.writing.adding import AddedRows, WritingStatement
from caraway_plugins.sources.iceberg.writing.commits import Base, SnapshotWrite
from caraway_plugins.sources.iceberg.writing.creating import IcebergCreation, IcebergDrop
from caraway_plugins.sources.iceberg.writing.lineage import FIELDS, RowLineage, is_kept

_WITH_DELETES = 2
"""The version of the format in which files of positions delete rows of others.

The first has no deletes, and the third has deletion vectors.
"""
_NOT_INSERTED, _NOT_CHANGED = "no row was inserted", "no row was changed"


class IcebergWriter:
    """Adds rows to tables and replaces them; creates and drops tables."""

    def insert(self, table: RemoteTable, columns: pa.Schema) -> IcebergInsert:
        """Return an INSERT of rows."""
        return IcebergInsert(table, columns)

    def create(self, definition: TableDefinition, columns: pa.Schema) -> IcebergCreation:
        """Return what creates a table with rows.

        Raises:
            InvalidQueryError: a column has a type that Iceberg lacks.
        """
        return IcebergCreation(definition, columns)

    def drop(self, table: RemoteTable) -> IcebergDrop:
        """Return what drops a table."""
        return IcebergDrop(table)

    def placed(self, table: RemoteTable) -> TableSpec:
        """Return the rows of the current snapshot with their places.

        Raises:
            QueryError: the table cannot be read.
        """
        title = _changing(table)
        request = written.request_of(table)
        try:
            opened = opening.open_table(request)
            with opening.worded(request):
                files, metadata = opened.files, opened.metadata
                snapshot, schema = metadata.at("")
                planned = [] if snapshot is None else planning.plan(files, metadata, snapshot)
                id_ = None if snapshot is None else snapshot.id
                return describing.placed(files, metadata, schema, planned, id_)
        except DatasetError as exc:
            raise ExecutionError(f"{title} failed: {exc.message}; {_NOT_CHANGED}") from exc

    def find_commit(self, table: RemoteTable, mark: str) -> int | None:
        """See `CommitLookup`."""
        return commits.find_commit(table, mark)

    def replace(self, table: RemoteTable, placed: TableSpec) -> IcebergReplacement:
        """Return what replaces rows of a table with places."""
        assert isinstance(placed, PlacedIcebergTable)
        return IcebergReplacement(table, placed)


class IcebergInsert(WritingStatement):
    """An INSERT into one table."""

    def __init__(self, table: RemoteTable, columns: pa.Schema) -> None:
        """Take the columns of the rows; others get NULL."""
        super().__init__(f"INSERT into {table.title}", _NOT_INSERTED)
        self._table, self._columns = table, columns

    def insert_rows(self, rows: Iterator[pa.RecordBatch]) -> int:
        """Write the rows as files, and commit them."""
        write = SnapshotWrite.begin(self._title, self._nothing, self._table)
        return self._write_rows(write, self._given(rows))

    def _written(self, write: SnapshotWrite, batches: Iterator[pa.RecordBatch]) -> int:
        added, count = AddedRows(write), 0
        for batch in batches:
            added.add(_whole(batch, self._table.schema))
            count += batch.num_rows
        if count:
            write.commit({"data": added.finish()}, count)
        return count


class IcebergReplacement(WritingStatement):
    """An UPDATE, a DELETE or a MERGE of one table."""

    def __init__(self, table: RemoteTable, placed: PlacedIcebergTable) -> None:
        """Take the table, and the snapshot whose rows are changed."""
        super().__init__(_changing(table), _NOT_CHANGED)
        self._table, self._placed = table, placed

    def insert_rows(self, rows: Iterator[pa.RecordBatch]) -> int:
        """Write the rows and the positions of those that go, and commit them."""
        write = SnapshotWrite.begin(self._title, self._nothing, self._table, is_change=True)
        return self._write_rows(write, self._given(rows))

    def _written(self, write: SnapshotWrite, batches: Iterator[pa.RecordBatch]) -> int:
        lineage = RowLineage(self._placed) if is_kept(write.version) else None
        added, count = AddedRows(write, FIELDS if lineage else ()), 0
        names = self._table.schema.names
        places: dict[str, list[np.ndarray]] = defaultdict(list)
        for batch in batches:
            count += batch.num_rows
            _note_places(batch, places)
            new = batch.filter(batch.column(IS_ADDED))
            if new.num_rows:
                added.add(lineage.changed(new, names) if lineage else new.select(names))
        if not count:
            return 0
        positions = self._positions(write, places)
        if write.version != _WITH_DELETES:
            for batch in self._left(positions, lineage):
                added.add(batch)
            replaced = [self._placed.listed[each] for each in positions]
            write.commit({"data": added.finish()}, count, self._base, replaced)
            return count
        deletes = self._deletes(write, positions)
        write.commit({"data": added.finish(), "deletes": deletes}, count, self._base)
        return count

    @property
    def _base(self) -> Base:
        return Base(self._placed.snapshot_id)

    def _positions(
        self, write: SnapshotWrite, places: dict[str, list[np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return the positions of the rows that go, in their order, by file."""
        found = {each: np.sort(np.concatenate(places[each])) for each in sorted(places)}
        if any((np.diff(each) == 0).any() for each in found.values()):
            raise write.refused("a row would be changed by more than one row of the source")
        return found

    def _left(
        self, gone: dict[str, np.ndarray], lineage: RowLineage | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the other rows of files that lose rows."""
        names = self._table.schema.names
        found = lineage.unchanged(list(gone), names) if lineage else self._rows(gone)
        for location, positions, rows in found:
            is_left = ~np.isin(positions, gone[location])
            if is_left.any():
                yield rows.filter(pa.array(is_left))

    def _rows(self, gone: Collection[str]) -> Iterator[tuple[str, np.ndarray, pa.RecordBatch]]:
        """Yield the rows of files: the file, their positions there, and the rows."""
        chosen = tuple(each for each in self._placed.files if each.location in gone)
        files = replace(self._placed, files=chosen)
        names = self._table.schema.names
        for batch in IcebergScanner().scan(files, RowRequest([*names, FILE, POSITION])):
            positions = batch.column(POSITION).to_numpy()
            yield batch.column(FILE)[0].as_py(), positions, batch.select(names)

    def _deletes(
        self, write: SnapshotWrite, gone: dict[str, np.ndarray]
    ) -> list[tuple[WrittenSpec, list[AddedFile]]]:
        by_spec: dict[int, list[AddedFile]] = defaultdict(list)
        for location, positions in gone.items():
            listed = self._placed.listed[location]
            by_spec[listed.spec_id].append(
                row_files.write_positions(write.data, location, positions, listed.partition)
            )
        return [(write.spec(id_), files) for id_, files in by_spec.items()]


def _whole(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with all columns of a table; those that are not given are NULL."""
    given = batch.schema.names
    arrays = [
        batch.column(each.name) if each.name in given else pa.nulls(batch.num_rows, each.type)
        for each in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _note_places(batch: pa.RecordBatch, places: dict[str, list[np.ndarray]]) -> None:
    """Add the places of rows that go, by their files."""
    gone = batch.select([FILE, POSITION]).filter(pc.is_valid(batch.column(FILE)))
    if not gone.num_rows:
        return
    names = gone.column(FILE).dictionary_encode()
    codes = names.indices.to_numpy(zero_copy_only=False)
    positions = gone.column(POSITION).to_numpy(zero_copy_only=False)
    for code, name in enumerate(names.dictionary.to_pylist()):
        places[name].append(positions[codes == code])


def _changing(table: RemoteTable) -> str:
    return f"the change of {table.title}"
