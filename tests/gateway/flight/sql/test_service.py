"""The calls of the ADBC driver, through its DB-API."""

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.tables import TableSpec
from tests.gateway.flight.serving import KEYS, serving
from tests.gateway.flight.sql.driving import drive, fetched
from tests.kit.engine import memory

TABLES: dict[str, TableSpec | str] = {
    "t": memory(a=[1, 2], s=["x", None]),
    "v": "SELECT a FROM t",
    "sales.o": memory(id=[1]),
}
UTC = datetime.UTC
VALUES: list[tuple[Any, str]] = [
    (True, "Boolean"),
    (7, "Int64"),
    (0.5, "Float64"),
    ("é", "Utf8"),
    (b"\x00\xff", "Binary"),
    (datetime.date(2024, 2, 29), "Date32"),
    (datetime.datetime(2024, 2, 29, 1, 2, 3, 4), "Timestamp(µs)"),
    (decimal.Decimal("12.345"), "Decimal128(5, 3)"),
    ([1, None], "List(Int64)"),
    (None, "Null"),
]


async def test_rows_of_a_query() -> None:
    async with serving(TABLES) as server:
        rows = await drive(server, fetched("SELECT a, s FROM t ORDER BY a"))
    assert rows.to_pylist() == [{"a": 1, "s": "x"}, {"a": 2, "s": None}]


async def test_partitions_of_a_query_are_read_by_another_connection() -> None:
    def offered(connection: Any) -> tuple[list[bytes], pa.Schema]:
        with connection.cursor() as cursor:
            partitions, schema = cursor.adbc_execute_partitions("SELECT a, s FROM t ORDER BY a")
            return list(partitions), schema

    def reading(partition: bytes) -> Callable[[Any], pa.Table]:
        def use(connection: Any) -> pa.Table:
            with connection.cursor() as cursor:
                cursor.adbc_read_partition(partition)
                table: pa.Table = cursor.fetch_arrow_table()
                return table

        return use

    async with serving(TABLES) as server:
        partitions, schema = await drive(server, offered)
        parts = [await drive(server, reading(each)) for each in partitions]
    rows = pa.concat_tables(parts)
    assert rows.to_pylist() == [{"a": 1, "s": "x"}, {"a": 2, "s": None}]
    assert schema.equals(rows.schema)


@pytest.mark.parametrize(("value", "kind"), VALUES)
async def test_parameters_keep_their_type(value: Any, kind: str) -> None:
    async with serving() as server:
        rows = await drive(server, fetched("SELECT $1 AS v, arrow_typeof($1) AS kind", value))
    assert rows.column("v").to_pylist() == [value]
    assert rows.column("kind").to_pylist() == [kind]


async def test_digits_of_other_scripts_are_names_of_parameters() -> None:
    sql = f"SELECT $² AS a, $1 AS b, ${'1' * 5_000} AS c"

    def use(connection: Any) -> list[str]:
        with connection.cursor() as cursor:
            return list(cursor.adbc_prepare(sql).names)

    async with serving() as server:
        assert await drive(server, use) == ["$1", f"${'1' * 5_000}", "$²"]


@pytest.mark.parametrize(
    ("sql", "values", "answer"),
    [
        ("SELECT sum(CASE WHEN s = ? THEN ? ELSE ? END) AS n FROM t", ("x", 5, 1), 6),
        ("SELECT sum(?) AS n FROM t", (2,), 4),
        ("SELECT ? || ? AS n", ("a", "b"), "ab"),
        ("SELECT max(v) AS n FROM (VALUES (1), (?)) AS x(v)", (2.5,), 2.5),
        ("SELECT max(value) AS n FROM generate_series(?, ?)", (1, 3), 3),
        ("SELECT date_part(?, DATE '2026-11-26') AS n", ("day",), 26),
    ],
)
async def test_parameters_give_expressions_their_types(
    sql: str, values: tuple[Any, ...], answer: Any
) -> None:
    def use(connection: Any) -> list[Any]:
        found = []
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            found.append(cursor.fetch_arrow_table())
            cursor.adbc_prepare(sql)
            cursor.execute(sql, values)
            found.append(cursor.fetch_arrow_table())
        return found

    async with serving(TABLES) as server:
        for rows in await drive(server, use):
            assert rows.to_pydict() == {"n": [answer]}


async def test_parameters_are_bound_by_position() -> None:
    async with serving(TABLES) as server:
        rows = await drive(server, fetched("SELECT a FROM t WHERE a > ? AND s = ?", 0, "x"))
        named = await drive(server, fetched("SELECT $2 - $1 AS d", 1, 10))
    assert rows.to_pydict() == {"a": [1]}
    assert named.to_pydict() == {"d": [9]}


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("SELECT * FROM t WHERE a = ? AND s = ?", [pa.int64(), pa.string()]),
        ("SELECT * FROM t WHERE a IN ($1, $2) OR $1 < 4", [pa.int64(), pa.int64()]),
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM v WHERE v.a = $1)", [pa.int64()]),
        ("INSERT INTO t (s, a) VALUES ($1, $2)", [pa.string(), pa.int64()]),
        ("UPDATE t SET s = $1 WHERE a = $2", [pa.string(), pa.int64()]),
        ("SELECT a + $1 FROM t LIMIT $2", [pa.int64(), pa.null()]),
        ("SELECT $1", [pa.null()]),
    ],
)
async def test_parameters_have_the_types_that_the_engine_infers(
    sql: str, types: list[pa.DataType]
) -> None:
    def prepare(connection: Any) -> pa.Schema:
        with connection.cursor() as cursor:
            return cursor.adbc_prepare(sql)

    async with serving(TABLES, writable=("t",)) as server:
        schema = await drive(server, prepare)
    assert schema.types == types and schema.names == [f"${n + 1}" for n in range(len(types))]


async def test_statement_that_writes_answers_how_many_rows() -> None:
    async with serving({"t": memory(a=[1])}, writable=("t",)) as server:
        made = await drive(server, fetched("INSERT INTO t VALUES (2), (3)"))
        found = await drive(server, fetched("SELECT count(*) AS n FROM t"))
    assert made.to_pydict() == {"count": [2]}
    assert found.to_pydict() == {"n": [3]}


async def test_update_runs_for_each_row_of_parameters() -> None:
    def use(connection: Any) -> int:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, None), (3, "c")])
            return int(cursor.rowcount)

    async with serving({"t": memory(a=[0], s=["x"])}, writable=("t",)) as server:
        assert await drive(server, use) == 3
        rows = await drive(server, fetched("SELECT a, s FROM t ORDER BY a"))
    assert rows.to_pydict() == {"a": [0, 1, 2, 3], "s": ["x", "a", None, "c"]}


NESTED = pa.struct([("a", pa.list_(pa.string())), ("b", pa.null())])


@pytest.mark.parametrize(
    "value",
    [
        pa.array([None], pa.list_(pa.string())),
        pa.array([None], pa.large_list(pa.int8())),
        pa.array([None], pa.list_(pa.int8(), 2)),
        pa.array([None], pa.map_(pa.string(), pa.int8())),
        pa.array([None], NESTED),
        pa.array([{"a": None, "b": None}], NESTED),
        pa.array([[None, ["x"]]]),
        pa.array([{"caraway": 1}]),
    ],
    ids=str,
)
async def test_nulls_of_nested_types_are_bound(value: pa.Array) -> None:
    def use(connection: Any) -> pa.Table:
        with connection.cursor() as cursor:
            cursor.execute("SELECT ? AS v, '$1' AS s", pa.record_batch([value], names=["1"]))
            return cursor.fetch_arrow_table()

    async with serving() as server:
        rows = await drive(server, use)
    assert rows.to_pylist() == [{"v": value.to_pylist()[0], "s": "$1"}]


async def test_null_lists_are_written() -> None:
    rows = [(1, ["a", None]), (2, None), (3, [])]

    def use(connection: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t (id, tags) VALUES (?, ?)", rows)
            cursor.execute("UPDATE t SET tags = $1 WHERE id = $2", (None, 3))
            empty = pa.record_batch([pa.array([None], pa.list_(pa.string()))], names=["1"])
            cursor.execute("UPDATE t SET tags = $1 WHERE id = 1", empty)
            cursor.execute("SELECT id, tags FROM t ORDER BY id")
            return cursor.fetchall()

    stored = {"t": memory(id=[0], tags=[["z"]])}
    async with serving(stored, writable=("t",)) as server:
        found = await drive(server, use)
    assert found == [(0, ["z"]), (1, None), (2, None), (3, None)]


async def test_a_type_that_cannot_be_bound_is_named() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["x"]))

    def use(connection: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT ?", pa.record_batch([runs], names=["1"]))

    async with serving() as server:
        with pytest.raises(Exception, match=r"parameter \$1: a run_end_encoded.*cannot be bound"):
            await drive(server, use)


async def test_an_update_says_which_row_failed() -> None:
    def use(connection: Any) -> None:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (CAST(? AS INT))", [("1",), ("2",), ("x",)])

    async with serving({"t": memory(a=[0])}, writable=("t",)) as server:
        with pytest.raises(Exception, match=r"row 3 of 3: .*'x'.*the 2 before it are written"):
            await drive(server, use)
        found = await drive(server, fetched("SELECT count(*) AS n FROM t"))
    assert found.to_pydict() == {"n": [3]}


async def test_where_names_are_looked_up() -> None:
    def use(connection: Any) -> tuple[str, str]:
        connection.adbc_current_catalog = "caraway"
        with pytest.raises(Exception, match="schema"):
            connection.adbc_current_db_schema = "elsewhere"
        return connection.adbc_current_catalog, connection.adbc_current_db_schema

    async with serving() as server:
        assert await drive(server, use) == ("caraway", "public")


async def test_a_write_is_done_when_execute_returns() -> None:
    """Programs do not fetch the count of an INSERT, and use the cursor again or close it."""

    def use(connection: Any) -> None:
        with connection.cursor() as cursor:
            for number in range(8):
                cursor.execute("INSERT INTO t VALUES (?)", (number,))
        for number in range(8, 16):
            with connection.cursor() as cursor:
                cursor.execute(f"INSERT INTO t VALUES ({number})")

    async with serving({"t": memory(a=[-1])}, writable=("t",)) as server:
        await drive(server, use)
        found = await drive(server, fetched("SELECT a FROM t ORDER BY a"))
    assert found.to_pydict() == {"a": list(range(-1, 16))}


async def test_a_write_that_fails_raises_from_execute() -> None:
    def use(connection: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO t VALUES ('x')")

    async with serving({"t": memory(a=[1])}, writable=("t",)) as server:
        with pytest.raises(Exception, match="'x' is not a valid BIGINT"):
            await drive(server, use)


async def test_what_the_driver_shows_of_the_server() -> None:
    def use(connection: Any) -> tuple[Any, ...]:
        objects = connection.adbc_get_objects(depth="columns", db_schema_filter="s%")
        return (
            connection.adbc_get_info(),
            connection.adbc_get_table_types(),
            connection.adbc_get_table_schema("o", db_schema_filter="sales"),
            objects.read_all().to_pylist(),
        )

    async with serving(TABLES) as server:
        info, types, schema, objects = await drive(server, use)
    assert info["vendor_name"] == "Caraway"
    assert types == ["TABLE", "VIEW"]
    assert schema == pa.schema([("id", pa.int64())])
    (catalog,) = objects
    (found,) = catalog["catalog_db_schemas"]
    (table,) = found["db_schema_tables"]
    assert (catalog["catalog_name"], found["db_schema_name"]) == ("caraway", "sales")
    assert (table["table_name"], table["table_type"]) == ("o", "TABLE")
    assert [each["column_name"] for each in table["table_columns"]] == ["id"]


async def test_mistakes_are_those_of_the_user() -> None:
    async with serving(TABLES) as server:
        for sql, values, said in (
            ("SELEKT", (), "syntax error"),
            ("SELECT ?", (1, 2), "1 parameters, but 2 columns"),
            ("SELECT ?, ?", (1,), "2 parameters, but 1 columns"),
            ("SELECT a FROM t WHERE a = ?", ([1, 2],), "List"),
        ):
            with pytest.raises(Exception, match=said) as caught:
                await drive(server, fetched(sql, *values))
            assert caught.value.status_code.name == "INVALID_ARGUMENT"  # type: ignore[attr-defined]


async def test_key_that_only_reads_cannot_write() -> None:
    async with serving({"t": memory(a=[1])}, writable=("t",), keys=KEYS) as server:
        with pytest.raises(Exception, match="read-only") as caught:
            await drive(server, fetched("INSERT INTO t VALUES (2)"), "reader")
        assert caught.value.status_code.name == "UNAUTHORIZED"  # type: ignore[attr-defined]
        with pytest.raises(Exception, match="not known") as caught:
            await drive(server, fetched("SELECT 1"), "nobody")
        assert caught.value.status_code.name == "UNAUTHENTICATED"  # type: ignore[attr-defined]
        found = await drive(server, fetched("SELECT count(*) AS n FROM t"), "reader")
        assert found.to_pydict() == {"n": [1]}


async def test_statements_are_of_the_protocol_flightsql() -> None:
    async with serving() as server:
        await drive(server, fetched("SELECT 1"))
        assert set(server.services.tallies.query_executions) == {("flightsql",)}
