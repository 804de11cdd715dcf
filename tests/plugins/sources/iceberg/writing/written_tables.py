"""Tables that are written, in each kind of catalog, and read by PyIceberg."""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import Transform

from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_core.protocols.remote import FILE, IS_ADDED, POSITION
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable, TableSpec, scanners
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.iceberg.source import IcebergSource
from caraway_plugins.sources.iceberg.writing.writer import IcebergWriter
from tests.kit import iceberg_rest, iceberg_tables
from tests.kit.iceberg_rest import IcebergRestServer

ROWS = pa.table(
    {
        "id": pa.array(range(4), pa.int64()),
        "i": pa.array([1, -1, None, 2**31 - 1], pa.int32()),
        "b": [True, False, None, True],
        "v": ["a b", "x/y", "ü" * 40, None],
        "f": pa.array([0.5, float("nan"), float("-inf"), None]),
        "g": pa.array([0.5, -0.0, 1e30, None], pa.float32()),
        "m": pa.array([Decimal(each) / 4 for each in range(4)], pa.decimal128(9, 2)),
        "d": [date(2020, 1, 1), date(1969, 12, 31), None, date(2020, 1, 2)],
        "t": pa.array([time(1, 2, 3, 4), time(0), None, time(23)], pa.time64("us")),
        "at": pa.array([datetime(2020, 1, 1, each) for each in range(4)], pa.timestamp("us")),
        "z": pa.array([datetime(1960, 1, 1, tzinfo=UTC)] * 4, pa.timestamp("us", "UTC")),
        "x": pa.array([b"\x00\xff", b"", None, b"z"], pa.binary()),
        "l": pa.array([[1, None], [], None, [3]], pa.list_(pa.int32())),
        "s": pa.array([{"y": 1}, {"y": None}, None, {"y": 4}], pa.struct({"y": pa.int64()})),
        "k": pa.array([[("a", 1)], [], None, [("b", None)]], pa.map_(pa.string(), pa.int32())),
    }
)
SMALL = pa.schema({"id": pa.int64(), "v": pa.string()})
Partition = tuple[str, Transform[Any, Any]]
Document = dict[str, Any]
UPGRADE = {"format-version": 3, "next-row-id": 0}


@dataclass
class Written:
    """A table for a writer, and for PyIceberg, which judges."""

    request: SourceRequest
    catalog: Catalog
    name: str
    server: IcebergRestServer | None = None

    @property
    def spec(self) -> TableSpec:
        return IcebergSource().resolve(self.request)

    @property
    def table(self) -> RemoteTable:
        written = self.spec.written
        assert written is not None
        return written

    def insert(self, given: pa.Table) -> int:
        return IcebergWriter().insert(self.table, given.schema).insert_rows(_batches(given))

    def placed(self) -> tuple[TableSpec, pa.Table]:
        """Return the rows with their places."""
        placed = IcebergWriter().placed(self.table)
        request = RowRequest(placed.schema.names)
        batches = list(scanners.of(placed).scan(placed, request))
        return placed, pa.Table.from_batches(batches, placed.schema)

    def replace(self, placed: TableSpec, gone: pa.Table, added: pa.Table | None = None) -> int:
        """Take rows out, each for one of those that are added, if there are any."""
        return replace_rows(self.table, placed, gone, added)

    def read(self, **options: Any) -> list[dict[str, Any]]:
        """Return the rows as PyIceberg reads them, by id."""
        table = self.catalog.load_table(f"n.{self.name}")
        return in_order(table.scan(**options).to_arrow())

    def snapshots(self) -> Sequence[Any]:
        return list(self.catalog.load_table(f"n.{self.name}").metadata.snapshots)

    def own_rows(self) -> list[dict[str, Any]]:
        """Return the rows as the source reads them, by id."""
        placed = IcebergWriter().placed(self.table)
        names = [each for each in placed.schema.names if each not in (FILE, POSITION)]
        batches = list(scanners.of(placed).scan(placed, RowRequest(names)))
        schema = pa.schema([placed.schema.field(name) for name in names])
        return in_order(pa.Table.from_batches(batches, schema))


def replace_rows(
    table: RemoteTable, placed: TableSpec, gone: pa.Table, added: pa.Table | None = None
) -> int:
    """Take rows out of a table, each for one of those that are added, if there are any."""
    rows = (gone if added is None else added).select(table.schema.names)
    is_added = pa.array([added is not None] * len(gone))
    places = gone.select([FILE, POSITION]).append_column(IS_ADDED, is_added)
    for column in rows.column_names:
        places = places.append_column(column, rows.column(column))
    return IcebergWriter().replace(table, placed).insert_rows(_batches(places))


def _batches(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    return iter(rows.to_batches())


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    return list(rows.sort_by([("id", "ascending")]).to_pylist())


def create(
    folder: Path,
    schema: pa.Schema | Any = ROWS.schema,
    partitions: Sequence[Partition] = (),
    properties: Mapping[str, str] | None = None,
) -> Written:
    """Create a table in a catalog in SQLite."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=folder.as_uri())
    written = create_in(
        catalog, folder, "sqlite", {"sqlite_file": f"{folder}/c.db"}, schema, properties
    )
    if partitions:
        with catalog.load_table("n.t").update_spec() as change:
            for number, (column, transform) in enumerate(partitions):
                change.add_field(column, transform, f"p{number}")
    return written


def create_in(
    catalog: Catalog,
    folder: Path,
    kind: str,
    params: Mapping[str, str],
    schema: pa.Schema | Any,
    properties: Mapping[str, str] | None = None,
    location: str = "",
) -> Written:
    """Create the table `n.t` in a catalog, in the folder unless a location is given."""
    catalog.create_namespace_if_not_exists("n")
    location = location or (folder / "n" / "t").as_uri()
    catalog.create_table("n.t", schema, location, properties=dict(properties or {}))
    request = SourceRequest(
        TableName("t"), "iceberg", f"{kind}://n/t", params, (), "read_write", folder, folder
    )
    return Written(request, catalog, "t")


@contextmanager
def over_rest(written: Written, **config: str) -> Iterator[Written]:
    """Serve the table over REST; `config` is given out with it."""
    with iceberg_rest.serving(written.catalog, config) as server:
        path = f"{server.url}/v1/namespaces/n/tables/{written.name}"
        request = replace(written.request, path=path, params={})
        yield replace(written, request=request, server=server)


def of_version(folder: Path, version: int, schema: Any = SMALL, **options: Any) -> Written:
    """Create a table. PyIceberg creates none of the third version, but reads them."""
    written = create(folder, schema, properties={"format-version": str(min(version, 2))}, **options)
    if version > 2:
        rewrite(folder, lambda document: {**document, **UPGRADE})
    return written


def rewrite(folder: Path, change: Callable[[Document], Document]) -> None:
    """Have the metadata be those that another program wrote."""
    path = iceberg_tables.newest(folder / "n" / "t")
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def listed(written: Written) -> list[Document]:
    """Return what the list of the current snapshot says of each manifest."""
    return _records(written.snapshots()[-1].manifest_list)[1]


def manifests(written: Written) -> list[tuple[Document, list[Document]]]:
    """Return the metadata and the entries of each manifest of the current snapshot."""
    return [_records(each["manifest_path"]) for each in listed(written)]


def _records(location: str) -> tuple[Document, list[Document]]:
    reader: Any = fastavro.reader(io.BytesIO(iceberg_tables.local(location).read_bytes()))
    return dict(reader.metadata), list(reader)


def small(*ids: int) -> pa.Table:
    """Return rows of a small table."""
    return pa.table({"id": ids, "v": [f"v{each}" for each in ids]}, schema=SMALL)


def files(folder: Path) -> set[Path]:
    """Return all files below a folder."""
    return {each for each in folder.rglob("*") if each.is_file()}


def refused(written: Written, given: pa.Table, folder: Path) -> QueryError:
    """Return the error of an INSERT that leaves the table, and no file."""
    before, there = written.read(), files(folder)
    with pytest.raises(QueryError) as caught:
        written.insert(given)
    assert written.read() == before
    assert files(folder) == there
    assert str(folder) not in caught.value.message
    return caught.value
