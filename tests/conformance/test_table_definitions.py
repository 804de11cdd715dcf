"""Each writable database creates a table with all of its rows, or not at all, and drops it."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import MemoryTable, RemoteTable
from tests.conformance.written_databases import KINDS, LAKES, Kind, keyed, mariadb_server
from tests.kit.engine import rows, session

__all__ = ["keyed", "mariadb_server"]
SCHEMAS = {"postgres": "public", "mysql": "caraway"}
NAME = TableName("c.s.new")
ODD = "Select ${x}; --'"
VALUES = pa.table({
    "id": pa.array([1, 2], pa.int64()),
    "t": pa.array(["\\N'\"\n\té\U0001f600", None], pa.string()),
    "i": pa.array([-(2**63), None], pa.int64()),
    "s": pa.array([-9, None], pa.int16()),
    "f": pa.array([0.1, None], pa.float64()),
    "m": pa.array([Decimal("-2.25"), None], pa.decimal128(15, 2)),
    "b": pa.array([True, None], pa.bool_()),
    "d": pa.array([date(2024, 2, 29), None], pa.date32()),
    "at": pa.array([datetime(2024, 2, 29, 1, 2, 3, 4), None], pa.timestamp("us")),
    "z": pa.array([datetime(2024, 2, 29, 1, 2, 3, 4, UTC), None], pa.timestamp("us", "UTC")),
    "Group": pa.array([b"\x00'\xff", None], pa.binary()),
})  # fmt: skip


@pytest.fixture
def kind(keyed: Kind) -> Kind:
    return keyed


def asked(kind: Kind) -> CatalogRequest:
    given = kind.request("new")
    params = {name: each for name, each in given.params.items() if name != "mysql_db"}
    return CatalogRequest("c", given.connector, "", params, given.base_dir, given.cache_dir)


def place(kind: Kind, name: str = "new", schema: str | None = None) -> RemoteTable:
    request = asked(kind)
    source = registry.CATALOG_SOURCES.load(request.connector)()
    in_schema = schema or SCHEMAS.get(request.connector, "main")
    found: RemoteTable = source.place(request, ListedTable(in_schema, name))
    return found


def listed(kind: Kind) -> set[str]:
    request = asked(kind)
    return {
        each.name for each in registry.CATALOG_SOURCES.load(request.connector)().tables(request)
    }


async def found(kind: Kind, name: str = "new") -> pa.Table:
    spec = registry.SOURCES.load(kind.request(name).connector)().resolve(kind.request(name))
    made = await rows(session({"t": spec}), "SELECT * FROM t")
    return pa.Table.from_pylist(made, schema=spec.schema)


async def define(kind: Kind, sql: str, table: RemoteTable | None = None, **options: Any) -> int:
    definition = TableDefinition(NAME, table or place(kind), **options)
    over = session({"m": MemoryTable(VALUES.schema, VALUES)})
    (made,) = await rows(over, sql, defines=definition)
    return int(made["count"])


@pytest.fixture(autouse=True)
def empty(kind: Kind) -> None:
    if SCHEMAS.get(kind.request("new").connector):  # Others have a file for each test.
        for name in ("new", ODD):
            kind.run(f"DROP TABLE IF EXISTS {kind.quoted(name)}")
    else:
        kind.run("CREATE TABLE other (id INTEGER)")


async def refused(kind: Kind, sql: str, *words: str, **options: Any) -> QueryError:
    before = listed(kind)
    with pytest.raises(QueryError) as caught:
        await define(kind, sql, **options)
    for each in words:
        assert each in caught.value.message
    assert "hunter2" not in caught.value.message
    assert listed(kind) == before
    return caught.value


def test_every_creator_has_a_class_here() -> None:
    names = registry.REMOTE_READERS
    creating = {each for each in names if registry.database_reader(each).is_creating}
    assert KINDS.keys() - LAKES == creating - LAKES


async def test_a_table_is_created_with_the_rows_of_a_query(kind: Kind) -> None:
    assert await define(kind, "SELECT * FROM m") == 2
    assert (await found(kind)).to_pylist() == VALUES.to_pylist()
    types = dict(zip(VALUES.schema.names, (await found(kind)).schema.types, strict=True))
    assert types == dict(zip(VALUES.schema.names, VALUES.schema.types, strict=True))
    assert "new" in listed(kind)


async def test_a_table_without_rows_has_its_columns(kind: Kind) -> None:
    sql = "SELECT CAST(NULL AS INT) AS a, CAST(NULL AS TEXT) AS b WHERE FALSE"
    assert await define(kind, sql, required=("b",), primary_key=("a",)) == 0
    assert (await found(kind)).schema.types == [pa.int32(), pa.string()]
    for row in ("NULL, 'x'", "1, NULL"):
        with pytest.raises(Exception, match=r"(?i)null"):
            kind.run(f"INSERT INTO {kind.quoted('new')} VALUES ({row})")
    kind.run(f"INSERT INTO {kind.quoted('new')} VALUES (1, 'x')")
    with pytest.raises(Exception, match=r"(?i)duplicate|unique"):
        kind.run(f"INSERT INTO {kind.quoted('new')} VALUES (1, 'x')")


async def test_texts_are_keys(kind: Kind) -> None:
    assert await define(kind, "SELECT 'a' AS k UNION ALL SELECT 'A'", primary_key=("k",)) == 2
    error = await refused(
        kind, "SELECT 'a' AS k UNION ALL SELECT 'a'", "nothing was created",
        table=place(kind, ODD), primary_key=("k",),
    )  # fmt: skip
    assert isinstance(error, InvalidQueryError)


async def test_names_are_taken_as_they_are(kind: Kind) -> None:
    names = ['a"b', "a`b", "%s", "values (1)", "select", "x'; DROP TABLE t; --", "Ü", "a, b"]
    columns = ", ".join(
        f'{number} AS "{name.replace(chr(34), chr(34) * 2)}"' for number, name in enumerate(names)
    )
    assert await define(kind, f"SELECT {columns}", place(kind, ODD)) == 1
    made = await found(kind, ODD)
    assert made.to_pylist() == [{name: number for number, name in enumerate(names)}]
    assert await define(kind, "SELECT 0 AS count", place(kind, ODD), is_dropped=True) == 0
    assert ODD not in listed(kind)


FAILING: Sequence[tuple[str, Sequence[str]]] = [
    ("SELECT 1 / (id - 2) AS x FROM m", ["ivision"]),
    ("SELECT 1 AS a, 2 AS \"A\"", ["two columns have the name 'a'"]),
    ("SELECT NULL AS a", ["column 'a' has no type"]),
    ("SELECT struct(1, 2) AS a", ["no type that keeps column 'a'", "nothing was created"]),
    ("INSERT INTO m SELECT * FROM m", ["Insert Into is refused"]),
    ("SELECT * FROM nowhere", ["nowhere"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "words"), FAILING)
async def test_what_fails_leaves_nothing(kind: Kind, sql: str, words: Sequence[str]) -> None:
    await refused(kind, sql, *words)
    assert "new" not in listed(kind)


async def test_rows_that_fail_late_leave_nothing(kind: Kind) -> None:
    sql = "SELECT 10 / (20000 - value) AS x FROM generate_series(1, 30000)"
    await refused(kind, sql, "ivision")


async def test_a_table_that_is_there_stays(kind: Kind) -> None:
    assert await define(kind, "SELECT 1 AS a") == 1
    error = await refused(kind, "SELECT 2 AS a", "nothing was created")
    assert isinstance(error, InvalidQueryError)
    assert (await found(kind)).to_pylist() == [{"a": 1}]


async def test_a_table_is_dropped(kind: Kind) -> None:
    await define(kind, "SELECT 1 AS a")
    assert await define(kind, "SELECT 0 AS count", is_dropped=True) == 0
    assert "new" not in listed(kind)
    await refused(kind, "SELECT 0 AS count", "nothing was dropped", is_dropped=True)


async def test_a_view_is_not_dropped(kind: Kind) -> None:
    kind.run(f"CREATE VIEW {kind.quoted('new')} AS SELECT 1 AS a")
    try:
        await refused(kind, "SELECT 0 AS count", "nothing was dropped", is_dropped=True)
    finally:
        kind.run(f"DROP VIEW {kind.quoted('new')}")


async def test_a_schema_that_is_not_there_is_an_error(kind: Kind) -> None:
    connector = kind.request("new").connector
    if connector == "sqlite":
        with pytest.raises(Exception, match="'main' alone"):
            place(kind, schema="nowhere")
    else:
        words = "no database" if connector == "mysql" else "does not exist", "nothing was created"
        await refused(kind, "SELECT 1 AS a", *words, table=place(kind, "x", "away"))


async def test_a_statement_that_is_stopped_leaves_nothing(kind: Kind) -> None:
    from caraway_engine.remote import answers

    table = place(kind)
    creator = answers.creator(table.reader)
    assert creator is not None
    columns = pa.schema([pa.field("a", pa.int64())])
    made = creator.create(TableDefinition(NAME, table), columns)

    def batches() -> Any:
        yield pa.RecordBatch.from_pydict({"a": [1]}, schema=columns)
        made._is_closed = True  # type: ignore[attr-defined] # As another thread does.
        yield pa.RecordBatch.from_pydict({"a": [2]}, schema=columns)

    with pytest.raises(QueryError, match="the statement was stopped; nothing was created"):
        made.insert_rows(batches())
    assert "new" not in listed(kind)
