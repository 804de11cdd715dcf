"""Requirements for every source of tables, whatever holds its data.

A source joins with a class that writes rows to where it reads them: see `SOURCES` and `SERVED`.
"""

import itertools
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.loading.declarations import Connector
from caraway_core.protocols.sources import Source
from caraway_core.tables import MemoryTable, TableSpec, scanners
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_engine.rows.plain import plain_schema
from caraway_engine.sessions.sessions import Session
from caraway_plugins.sources import key_ranges
from caraway_plugins.sources.api.source import ApiSource
from tests.conformance import documented
from tests.conformance.served_sources import FIXTURES, SERVED
from tests.conformance.source_kinds import ROWS, SOURCES, STATEMENTS, Kind
from tests.kit import mariadb as mariadb_tables
from tests.kit import (
    remote,
    sqlite_files,
)
from tests.kit.engine import rows, session
from tests.kit.postgres import Server

_names = itertools.count()


WITHOUT_COUNTS = (
    "adbc", "flightsql", "graphql", "http", "odbc", "snowflake", "spark",
)  # fmt: skip
READERS = {"adbc": "adbc/standard", "odbc": "odbc/mysql"}
"""The readers of sources that have several dialects."""
KEPT = {
    "dynamodb": mariadb_tables.kept,
    "elasticsearch": mariadb_tables.kept,
    "graphql": mariadb_tables.kept,
    "http": mariadb_tables.kept,
    "mongodb": mariadb_tables.kept,
    "mysql": mariadb_tables.kept,
    "odbc": mariadb_tables.kept,
    "opensearch": mariadb_tables.kept,
    "sqlite": sqlite_files.kept,
}
"""The rows that remain of others, for databases without NaN."""
REFUSED = {"mongodb": ("a.b", 'a"b')}
"""Names that FerretDB refuses, and MongoDB has."""


@pytest.fixture(params=[*SOURCES, *SERVED])
def connector(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


@pytest.fixture
def kind(connector: str, folder: Path, postgres: Server, request: pytest.FixtureRequest) -> Kind:
    if connector in SERVED:
        return SERVED[connector](request.getfixturevalue(FIXTURES[connector]))
    return SOURCES[connector](folder, postgres)


@pytest.fixture
def source(connector: str) -> Source:
    if connector == "arrow_file":
        return documented.source()
    if connector == "http":  # Files of the web are those of disks.
        return ApiSource()
    made: Source = registry.SOURCES.load(connector)()
    return made


@pytest.fixture
def name() -> str:
    return f"conforming_{next(_names)}"


@pytest.fixture(scope="module")
def answering() -> dict[str, tuple[Session, Session]]:
    """Sessions over the rows of a source, and over the same rows in memory; by connector."""
    return {}


@pytest.mark.parametrize("sql", STATEMENTS)
async def test_answers_are_those_over_the_rows(
    kind: Kind,
    source: Source,
    name: str,
    connector: str,
    answering: dict[str, tuple[Session, Session]],
    sql: str,
) -> None:
    if connector not in answering:
        kept = KEPT[connector](ROWS) if connector in KEPT else ROWS
        answering[connector] = (
            session({"t": source.resolve(kind.write(ROWS, name))}),
            session({"t": MemoryTable(ROWS.schema, kept)}),
        )
    over, expected = answering[connector]
    assert _sorted(await rows(over, sql)) == _sorted(await rows(expected, sql))


def test_columns_are_those_of_the_rows(kind: Kind, source: Source, name: str) -> None:
    table = source.resolve(kind.write(ROWS, name))
    assert plain_schema(_schema(table)).equals(ROWS.schema)


async def test_table_without_rows_has_its_columns(kind: Kind, source: Source, name: str) -> None:
    table = source.resolve(kind.write(ROWS.slice(0, 0), name))
    assert _schema(table).names == ROWS.schema.names
    assert await rows(session({"t": table}), "SELECT count(*) AS n FROM t") == [{"n": 0}]


async def test_names_are_taken_as_they_are(
    kind: Kind, source: Source, name: str, connector: str
) -> None:
    odd = ["Upper", 'a"b', "a b", "select", "ünï", "a.b", "x'; DROP TABLE t; --"]
    odd = [each for each in odd if each not in REFUSED.get(connector, ())]
    table = pa.table({each: [number] for number, each in enumerate(odd)})
    over = session({"t": source.resolve(kind.write(table, name))})
    for number, each in enumerate(odd):
        quoted = '"' + each.replace('"', '""') + '"'
        sql = f"SELECT {quoted} AS x FROM t WHERE {quoted} = {number}"
        assert await rows(over, sql) == [{"x": number}]


def test_spec_goes_to_other_processes_and_shows_no_secret(
    kind: Kind, source: Source, name: str
) -> None:
    table = source.resolve(kind.write(ROWS, name))
    assert pickle.loads(pickle.dumps(table)) == table
    assert "hunter2" not in repr(table)


def test_fingerprint_is_another_one_for_other_columns(
    kind: Kind, source: Source, name: str
) -> None:
    before = source.fingerprint(kind.write(ROWS, name))
    assert source.fingerprint(kind.write(ROWS.drop_columns("price"), name)) != before


LARGE = pa.table({"key": pa.array(range(1_000), pa.int64()), "other": [1.5] * 1_000})


def test_large_tables_have_parts_where_the_source_says_so(
    kind: Kind, source: Source, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_ranges, "SPLIT_BYTES", 4_096)
    table = source.resolve(kind.write(LARGE, name))
    pieces = session({"t": table}).pieces(TableName("t"))
    assert bool(pieces and table.is_divisible) == source.capabilities.splits


async def test_what_stays_where_it_is_is_what_the_source_says(
    kind: Kind, source: Source, name: str, connector: str
) -> None:
    says = source.capabilities
    over = session({"t": source.resolve(kind.write(LARGE, name))})
    with remote.watched(
        READERS.get(connector, connector) if says.statements else "postgres"
    ) as sent:
        await rows(over, "SELECT key FROM t WHERE key > 500 LIMIT 3")
        await rows(over, "SELECT key > 500 AS big, count(*) FROM t GROUP BY 1")
    assert bool(sent) == any("GROUP BY" in each for each in sent) == says.statements
    if sent:
        assert ("other" not in sent[0]) == says.projection
        assert ("WHERE" in sent[0]) == says.filters
        assert ("LIMIT 3" in sent[0]) == says.limit
    else:
        text = str(await rows(over, "EXPLAIN SELECT key FROM t WHERE key > 500 LIMIT 3"))
        # The engine reads tables of their own kind through a scan that filters and cuts itself.
        is_scanned = "DatasetExec" in text
        scan = text[text.rindex("DatasetExec" if is_scanned else "DataSourceExec") :]
        assert ("projection=[key]" in scan) == says.projection
        if is_scanned:
            table = source.resolve(kind.write(LARGE, name))
            request = RowRequest(["key"], filters=[ColumnFilter("key", ">", 500)], limit=3)
            keys = [
                key
                for batch in scanners.of(table).scan(table, request)
                for key in batch.column("key").to_pylist()
            ]
            assert all(key > 500 for key in keys) == says.filters
            assert (len(keys) < 499) == says.limit
            return
        assert ("predicate=key" in scan) == says.filters
        assert ("limit=3" in text or "fetch=3" in text) == says.limit


async def test_rows_are_written_where_the_source_says_so(
    kind: Kind, source: Source, name: str
) -> None:
    request = replace(kind.write(LARGE, name), access="read_write")
    over = session({"t": source.resolve(request)})
    can_write = True
    try:
        await rows(over, "DELETE FROM t WHERE key = 1")
    except QueryError:
        can_write = False
    assert can_write == source.capabilities.writes


def test_its_declaration_says_which_modes_and_params_it_has(
    kind: Kind, source: Source, connector: str, name: str
) -> None:
    request = kind.write(LARGE, name)
    declared = getattr(source, "declaration", None) or registry.connector(connector)
    assert isinstance(declared, Connector)
    assert declared.has_changes == source.capabilities.changes
    assert declared.is_only_followed != source.capabilities.scan
    assert all(map(declared.has_param, request.params))
    assert declared.params is not None and declared.poll_s > 0


def test_changes_have_a_reader_where_the_source_says_so(connector: str, source: Source) -> None:
    assert (connector in registry.CHANGE_SOURCES) == source.capabilities.changes


def test_count_of_rows_is_that_of_the_rows_where_it_is_known(
    kind: Kind, source: Source, name: str, connector: str
) -> None:
    table = source.resolve(kind.write(LARGE, name))
    assert table.row_count == (None if connector in WITHOUT_COUNTS else 1_000)


def test_what_is_not_there_is_not_found(kind: Kind, source: Source) -> None:
    with pytest.raises(DatasetError) as caught:
        source.resolve(kind.absent())
    assert caught.value.type == "not_found"


def _schema(table: TableSpec) -> pa.Schema:
    assert hasattr(table, "schema")
    schema: pa.Schema = table.schema
    return schema


def _sorted(found: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, found))
