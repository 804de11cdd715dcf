"""Tables in an object store are written there, or left as they were when the store fails."""

import secrets
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import MemoryTable
from caraway_engine.sessions.sessions import Session
from caraway_plugins.sources.iceberg.catalog import IcebergCatalog
from caraway_plugins.sources.iceberg.writing.writer import IcebergWriter
from tests.conformance.written_databases import write
from tests.kit.engine import rows, session
from tests.kit.s3 import KEY, REGION, SECRET, S3Server
from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import SMALL, Written, in_order, small

SOURCE = pa.table({"k": [2, 9], "w": ["two", "nine"]})
MERGE = (
    "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = s.w "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.w)"
)
STATEMENTS = {
    "INSERT INTO t VALUES (4, 'd')": 1,
    "UPDATE t SET v = 'x' WHERE id > 1": 3,
    "DELETE FROM t WHERE id = 3": 1,
    MERGE: 2,
}


@dataclass
class StoredTable:
    """A table, and the bucket of its files."""

    written: Written
    server: S3Server
    bucket: str

    @property
    def session(self) -> Session:
        return session({"t": self.written.spec, "s": MemoryTable(SOURCE.schema, SOURCE)})

    @property
    def keys(self) -> set[str]:
        return self.server.keys(self.bucket)


class FailingPuts:
    """Refuses to store one file of a statement and those after it."""

    def __init__(self, first: int, status: int, others: str) -> None:
        """Take how the names of files end that the statement does not store itself."""
        self._first, self._status, self._others = first, status, others
        self._paths: list[str] = []

    def refuse(self, method: str, path: str, _query: str) -> int | None:
        if method != "PUT" or path.endswith(self._others):
            return None
        if path not in self._paths:
            self._paths.append(path)
        return self._status if len(self._paths) >= self._first else None


@contextmanager
def stored(
    server: S3Server, folder: Path, kind: str, name: str, scheme: str = "s3"
) -> Iterator[StoredTable]:
    server.bucket(name)
    vended = {
        "s3.endpoint": server.endpoint, "s3.region": REGION, "s3.access-key-id": KEY,
        "s3.secret-access-key": SECRET,
    }  # fmt: skip
    place = f"{scheme}://{name}"
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=place, **vended)
    params = {"sqlite_file": f"{folder}/c.db", **server.params(), "client_timeout": "2s"}
    with closing(catalog):
        written = written_tables.create_in(
            catalog, folder, "sqlite", params, SMALL, location=f"{place}/a b/t"
        )
        if kind == "sqlite":
            yield StoredTable(written, server, name)
            return
        # The catalog gives out what reaches the store.
        with written_tables.over_rest(written, **vended) as served:
            allowed = {"allow_http": "true", "client_timeout": "2s"}
            served.request.params.update(allowed)  # type: ignore[attr-defined]
            yield StoredTable(served, server, name)


@pytest.fixture(params=["sqlite", "rest"])
def table(
    request: pytest.FixtureRequest, s3_server: S3Server, tmp_path: Path
) -> Iterator[StoredTable]:
    with stored(s3_server, tmp_path, request.param, f"b{uuid.uuid4()}") as made:
        yield made


def first_rows(table: StoredTable) -> None:
    table.written.insert(pa.table({"id": [1, 2, 3], "v": ["a", "b", None]}, SMALL))


async def test_rows_are_added_and_changed(table: StoredTable) -> None:
    first_rows(table)
    for sql, count in STATEMENTS.items():
        assert await write(table.session, sql) == count
        found = await rows(table.session, "SELECT * FROM t ORDER BY id")
        assert found == table.written.read(), sql
    assert found == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": "two"},
        {"id": 4, "v": "x"},
        {"id": 9, "v": "nine"},
    ]
    assert all(each.startswith("a b/t/") for each in table.keys)


async def test_a_store_that_fails_leaves_the_table(table: StoredTable) -> None:
    first_rows(table)
    before, there = table.written.read(), table.keys
    # PyIceberg, which writes the metadata behind REST, does not expect errors.
    others, status = (".metadata.json", 403) if table.written.server else (".none", 503)
    failing = 0
    while table.written.read() == before:
        failing += 1
        puts = FailingPuts(failing, status, others)
        session_ = table.session
        try:
            with table.server.refusing(puts.refuse):
                await write(session_, MERGE)
        except ExecutionError as exc:
            assert f"({status} " in exc.message and "; no row was " in exc.message, exc.message
            assert SECRET not in exc.message
            assert (table.written.read(), table.keys) == (before, there)
    # Each file failed once: positions, rows, two manifests, their list, and the metadata.
    assert failing == (6 if table.written.server else 7)


def test_a_store_that_also_keeps_files_leaves_the_table(table: StoredTable) -> None:
    def refuse(method: str, path: str, _query: str) -> int | None:
        return 403 if method == "POST" or (method == "PUT" and "/snap-" in path) else None

    first_rows(table)
    before, there = table.written.read(), table.keys
    with (
        table.server.refusing(refuse),
        pytest.raises(ExecutionError, match=r"\(403 .*; no row was inserted"),
    ):
        table.written.insert(pa.table({"id": [4]}))
    left = {each.rpartition(".")[2] for each in table.keys - there}
    assert (table.written.read(), left) == (before, {"parquet", "avro"})


def test_a_large_file_that_is_cut_leaves_nothing(table: StoredTable) -> None:
    def refuse(_method: str, _path: str, query: str) -> int | None:
        return 403 if "partNumber=2" in query else None

    there = table.keys
    rows = pa.table({"id": range(24), "v": [secrets.token_hex(1 << 18) for _ in range(24)]})
    with (
        table.server.refusing(refuse),
        pytest.raises(ExecutionError, match=r"\(403 .*; no row was inserted"),
    ):
        table.written.insert(rows)
    uploads = table.server.client.list_multipart_uploads(Bucket=table.bucket)
    assert (table.keys, uploads.get("Uploads", [])) == (there, [])
    assert table.written.insert(rows) == 24
    assert table.written.read() == rows.to_pylist()


def test_a_table_is_created_in_a_store_with_its_rows_or_not_at_all(
    s3_server: S3Server, tmp_path: Path
) -> None:
    with stored(s3_server, tmp_path, "rest", f"b{uuid.uuid4()}") as table:
        server, params = table.written.server, dict(table.written.request.params)
        assert server is not None
        asked = CatalogRequest("c", "iceberg", server.url, params, tmp_path, tmp_path)
        place = IcebergCatalog().place(asked, ListedTable("n", "made"))
        made = IcebergWriter().create(TableDefinition(TableName("c.n.made"), place), SMALL)
        there = table.keys
        puts = FailingPuts(2, 403, ".metadata.json")
        with (
            table.server.refusing(puts.refuse),
            pytest.raises(ExecutionError, match=r"\(403 .*; nothing was created"),
        ):
            made.insert_rows(iter(small(1, 2).to_batches()))
        assert (table.keys, server.catalog.table_exists("n.made")) == (there, False)
        assert made.insert_rows(iter(small(1, 2).to_batches())) == 2
        assert in_order(server.catalog.load_table("n.made").scan().to_arrow()) == (
            small(1, 2).to_pylist()
        )
