"""Creates tables with rows in catalogs that speak REST, and drops them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import DatasetError, ExecutionError, InvalidQueryError
from caraway_core.protocols.sources import SourceRequest
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable
from caraway_plugins.iceberg import added_snapshots, column_types, read_metadata, written_types
from caraway_plugins.iceberg.added_snapshots import AddedSnapshot
from caraway_plugins.iceberg.column_types import NoIcebergTypeError
from caraway_plugins.sources import params
from caraway_plugins.sources.iceberg import opening, rest
from caraway_plugins.sources.iceberg.opening import OpenedTable
from caraway_plugins.sources.iceberg.writing import catalogs, written
from caraway_plugins.sources.iceberg.writing.adding import AddedRows, WritingStatement
from caraway_plugins.sources.iceberg.writing.catalogs import LostCommitError
from caraway_plugins.sources.iceberg.writing.commits import Base, SnapshotWrite

_NOT_CREATED = "nothing was created"


class IcebergCreation(WritingStatement):
    """A table that is created with its rows."""

    def __init__(self, definition: TableDefinition, columns: pa.Schema) -> None:
        """Take the definition, and the columns of the rows.

        Raises:
            InvalidQueryError: a column has a type that Iceberg lacks.
        """
        title = f"{definition.verb} of {definition.table.title}"
        super().__init__(title, _NOT_CREATED)
        self._table = definition.table
        self._columns = written_types.columns(columns)
        try:
            schema = column_types.schema(self._columns)
        except NoIcebergTypeError as exc:
            raise InvalidQueryError(f"{title}: {exc}, which Iceberg lacks") from exc
        self._schema = _document(schema.document(), definition)

    def insert_rows(self, rows: Iterator[pa.RecordBatch]) -> int:
        """Write the rows as files, and commit them with the table."""
        request = written.request_of(self._table)
        body = {
            "name": rest.path_of(request.path).table,
            "schema": self._schema,
            "properties": {"format-version": "2"},
        }
        try:
            opened = _staged(request, body)
        except DatasetError as exc:
            raise ExecutionError(f"{self._title} failed: {exc.message}; {_NOT_CREATED}") from exc
        write = _NewTable(self._title, _NOT_CREATED, self._table, opened)
        return self._write_rows(write, self._given(rows))

    def _written(self, write: SnapshotWrite, batches: Iterator[pa.RecordBatch]) -> int:
        added, count = AddedRows(write), 0
        for batch in batches:
            columns = [
                pc.cast(values, each.type)
                for values, each in zip(batch.columns, self._columns, strict=True)
            ]
            added.add(pa.RecordBatch.from_arrays(columns, schema=self._columns))
            count += batch.num_rows
        write.commit({"data": added.finish()}, count)
        return count


class IcebergDrop:
    """A table that is taken out of its catalog; its files stay. See `RemoteChange`."""

    def __init__(self, table: RemoteTable) -> None:
        self._table = table

    def write_rows(self) -> int:
        """Drop the table."""
        request = written.request_of(self._table)
        path = rest.path_of(request.path)
        title = f"DROP TABLE of {self._table.title}"
        try:
            with rest.connected(path, _params(request)) as catalog:
                catalog.drop(path.namespace, path.table)
        except DatasetError as exc:
            is_open = exc.type == "unavailable"
            left = "look whether the table is there" if is_open else "nothing was dropped"
            raise ExecutionError(f"{title} failed: {exc.message}; {left}") from exc
        return 0

    def close(self) -> None:
        """Nothing can be stopped: there is one request."""


class _NewTable(SnapshotWrite):
    """A write to a table that is not there yet."""

    def _commit(
        self, added: AddedSnapshot, manifests: Sequence[Mapping[str, object]], base: Base | None
    ) -> None:
        snapshot = self._snapshot(added, manifests) if manifests else None
        path = rest.path_of(self._request.path)
        body = added_snapshots.creation(self.opened.document, snapshot)
        try:
            with rest.connected(path, _params(self._request)) as catalog, catalogs.sending():
                is_committed = catalog.commit(path.namespace, path.table, body)
        except LostCommitError as exc:
            self._look_up(exc)
            return
        if not is_committed:
            raise DatasetError("invalid", "another writer created a table of that name")

    def _look_up(self, exc: DatasetError) -> None:
        try:
            is_there = opening.open_table(self._request).metadata.uuid == self.opened.metadata.uuid
        except DatasetError:
            is_there = False
        if not is_there:
            raise ExecutionError(
                f"{self._title}: {exc.message}, while the table was committed; look whether it is "
                "there before you run it again"
            ) from exc


def _staged(request: SourceRequest, body: Mapping[str, object]) -> OpenedTable:
    """Return a table as its catalog would create it."""
    path = rest.path_of(request.path)
    with rest.connected(path, _params(request)) as catalog:
        answer = catalog.stage(path.namespace, body)
    with opening.worded(request):
        metadata = read_metadata.parsed(answer.metadata)
        return OpenedTable(answer.metadata, metadata, opening.table_files(request, answer.config))


def _params(request: SourceRequest) -> params.Params:
    return params.checked(request.connector, request.params)


def _document(schema: Mapping[str, Any], definition: TableDefinition) -> dict[str, object]:
    """Return a schema as JSON with the required columns, and those that identify rows."""
    needed = {*definition.required, *definition.primary_key}
    fields = [{**each, "required": each["name"] in needed} for each in schema["fields"]]
    keys = [each["id"] for each in fields if each["name"] in definition.primary_key]
    return {**schema, "fields": fields, **({"identifier-field-ids": keys} if keys else {})}
