import asyncio
import itertools
from dataclasses import replace

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, ExecutionError, InvalidQueryError
from caraway_core.tables import MemoryTable
from caraway_plugins.sources.postgres.source import PostgresSource
from tests.kit import remote
from tests.kit.deadlines import until
from tests.kit.engine import rows, session
from tests.kit.postgres import Server

NUMBERS = itertools.count()


def made(postgres: Server, columns: str, *statements: str) -> str:
    name = f"s{next(NUMBERS)}"
    postgres.execute(
        f"CREATE TABLE {name} ({columns})", *(each.format(name) for each in statements)
    )
    return name


def test_types_of_columns(postgres: Server) -> None:
    postgres.execute("CREATE DOMAIN price AS numeric(10,2)", "CREATE TYPE mood AS ENUM ('ok')")
    name = made(
        postgres,
        "a bigint, b numeric(15,2), c numeric, d varchar(5), e char(5), f uuid, g jsonb, h int[],"
        "i timestamptz, j double precision, k price, l mood, m oid, n bytea, o time, p interval,"
        'q text COLLATE "C", r numeric(5,2)[], s int GENERATED ALWAYS AS (1) STORED',
    )
    found = {each.name: each for each in remote.resolved(postgres, name).columns}
    kinds = {
        name: (str(each.type), each.is_comparable, each.is_text) for name, each in found.items()
    }
    assert kinds == {
        "a": ("int64", True, False),
        "b": ("decimal128(15, 2)", True, True),
        "c": ("decimal128(38, 20)", False, True),
        "d": ("string", True, False),
        "e": ("string", False, False),
        "f": ("string", False, True),
        "g": ("string", False, True),
        "h": ("list<item: int32>", False, False),
        "i": ("timestamp[us, tz=UTC]", True, False),
        "j": ("double", True, False),
        "k": ("decimal128(10, 2)", False, True),
        "l": ("string", False, True),
        "m": ("uint32", False, True),
        "n": ("binary", False, False),
        "o": ("time64[us]", False, False),
        "p": ("string", False, True),
        "q": ("string", True, False),
        "r": ("list<item: decimal128(5, 2)>", False, True),
        "s": ("int32", True, False),
    }


async def test_values_of_every_type_come_as_they_are(postgres: Server) -> None:
    name = made(
        postgres,
        "a numeric(15,2), b uuid, c int[], d text[], e char(4), f interval, g bytea, h numeric[],"
        "i oid, j bool, k date, l real",
        "INSERT INTO {} VALUES (-1.5, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{{1,NULL}}',"
        " '{{\"x,y\",NULL}}', 'ab', '1 day', '\\x00ff', '{{1.25}}', 4000000000, true,"
        " '0001-01-01', 1.5), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
        " NULL)",
    )
    found, empty = await rows(session({"t": remote.resolved(postgres, name)}), "SELECT * FROM t")
    assert [str(value) for value in found.values()] == [
        "-1.50", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "[1, None]", "['x,y', None]", "ab  ",
        "1 day", "b'\\x00\\xff'", "[Decimal('1.25000000000000000000')]", "4000000000", "True",
        "0001-01-01", "1.5",
    ]  # fmt: skip
    assert set(empty.values()) == {None}


@pytest.mark.parametrize(
    ("column", "value"),
    [("n numeric(5,2)", "'NaN'"), ("t timestamp", "'infinity'"), ("n numeric", "1e30")],
)
async def test_value_that_arrow_has_not_is_an_error(
    postgres: Server, column: str, value: str
) -> None:
    name = made(postgres, column, f"INSERT INTO {{}} VALUES ({value})")
    over = session({"t": remote.resolved(postgres, name)})
    with pytest.raises(InvalidQueryError, match=f"public.{name}.*declare the column"):
        await rows(over, "SELECT * FROM t")
    declared = [pa.field(column.split()[0], pa.string())]
    as_text = session({"t": remote.resolved(postgres, name, declared)})
    assert len(await rows(as_text, "SELECT * FROM t")) == 1


def test_declared_columns_are_those_that_the_dataset_has(postgres: Server) -> None:
    name = made(postgres, "a bigint, b int, c text")
    declared = [pa.field("b", pa.int64()), pa.field("c", pa.string())]
    found = remote.resolved(postgres, name, declared)
    assert found.schema.names == ["b", "c"] and found.schema.types == [pa.int64(), pa.string()]
    assert [each.is_comparable for each in found.columns] == [False, True]
    with pytest.raises(DatasetError, match="no column 'd'") as caught:
        remote.resolved(postgres, name, [pa.field("d", pa.int64())])
    assert caught.value.type == "schema"


def test_view_is_read_as_a_table(postgres: Server) -> None:
    name = made(postgres, "a bigint")
    postgres.execute(f"CREATE VIEW {name}_v AS SELECT a + 1 AS b FROM {name}")
    assert remote.resolved(postgres, f"{name}_v").schema.names == ["b"]


def test_dataset_that_follows_changes_has_no_rows_of_its_own(postgres: Server) -> None:
    name = made(postgres, "a bigint PRIMARY KEY")
    request = replace(remote.request(postgres, name), is_followed=True)
    assert isinstance(PostgresSource().resolve(request), MemoryTable)


def test_fingerprint_changes_with_the_columns(postgres: Server) -> None:
    name = made(postgres, "a bigint")
    request = remote.request(postgres, name)
    before = PostgresSource().fingerprint(request)
    postgres.execute(f"INSERT INTO {name} VALUES (1)")
    assert PostgresSource().fingerprint(request) == before
    postgres.execute(f"ALTER TABLE {name} ALTER a TYPE int")
    assert PostgresSource().fingerprint(request) != before


def test_large_tables_have_splits_between_which_no_row_is_lost(postgres: Server) -> None:
    name = made(
        postgres,
        "id bigint PRIMARY KEY, s text",
        "INSERT INTO {} SELECT i, repeat('x', 1000) FROM generate_series(1, 50000) i",
        "ANALYZE {}",
    )
    found = remote.resolved(postgres, name)
    assert len(found.splits) >= 3 and found.size_bytes > 50_000_000
    edges = [(each.low, each.high) for each in found.splits]
    assert edges[0][0] is None and edges[-1][1] is None
    assert [high for _, high in edges[:-1]] == [low for low, _ in edges[1:]]


@pytest.mark.parametrize(
    ("params", "type_", "said"),
    [
        ({"pg_user": "nobody"}, "auth", 'role "nobody" does not exist'),
        ({"pg_db": "none"}, "not_found", 'database "none" does not exist'),
        ({"pg_host": "/nowhere"}, "unavailable", "No such file"),
        ({"pg_sslmode": "no"}, "invalid", "pg_sslmode"),
    ],
)
def test_database_that_cannot_be_used(
    postgres: Server, params: dict[str, str], type_: str, said: str
) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        PostgresSource().resolve(remote.request(postgres, "t", **params))
    assert caught.value.type == type_


@pytest.mark.parametrize("name", ["none", "public.none", "t; DROP TABLE t", 'x" --', "a.b"])
def test_table_that_is_not_there(postgres: Server, name: str) -> None:
    with pytest.raises(DatasetError) as caught:
        remote.resolved(postgres, name)
    assert caught.value.type == "not_found"


async def test_names_that_need_quoting_are_names(postgres: Server) -> None:
    postgres.execute(
        'CREATE TABLE "; DROP ""T""" ("a""b; --" int)', 'INSERT INTO "; DROP ""T""" VALUES (7)'
    )
    over = session({"t": remote.resolved(postgres, '; DROP "T"')})
    assert await rows(over, 'SELECT "a""b; --" AS x FROM t WHERE "a""b; --" = 7') == [{"x": 7}]


async def test_password_is_in_no_text(postgres: Server) -> None:
    request = remote.request(postgres, made(postgres, "a int"), pg_pass="hunter2")
    table = PostgresSource().resolve(request)
    assert "hunter2" not in repr(table)
    over = session({"t": table})
    postgres.execute(f"DROP TABLE {request.path}")
    with pytest.raises(ExecutionError, match="does not exist") as caught:
        await rows(over, "SELECT a FROM t")
    assert "hunter2" not in str(caught.value) and "libpq" not in str(caught.value)


async def test_overflow_there_is_an_overflow_here(postgres: Server) -> None:
    name = made(postgres, "a bigint", "INSERT INTO {} VALUES (9223372036854775807), (1)")
    over = session({"t": remote.resolved(postgres, name)})
    with pytest.raises(InvalidQueryError, match="overflow"):
        await rows(over, "SELECT sum(a) FROM t")


async def test_kept_connection_that_broke_is_replaced(postgres: Server) -> None:
    name = made(postgres, "a bigint", "INSERT INTO {} VALUES (1)")
    over = session({"t": remote.resolved(postgres, name)})
    assert await rows(over, "SELECT a FROM t") == [{"a": 1}]
    clients = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE 'COPY%'"
    postgres.execute(f"SELECT pg_terminate_backend(pid) {clients}")
    until(lambda: not postgres.rows(f"SELECT 1 {clients}"), "the connections are gone")
    assert await rows(over, "SELECT a FROM t") == [{"a": 1}]


async def test_rows_that_break_off_are_an_error(postgres: Server) -> None:
    name = made(postgres, "a bigint", "INSERT INTO {} SELECT i FROM generate_series(1, 10) i")
    postgres.execute(f"CREATE VIEW {name}_v AS SELECT a, 1 / (a - 5) AS b FROM {name}")
    over = session({"t": remote.resolved(postgres, f"{name}_v")})
    with pytest.raises(ExecutionError, match="division by zero; check the database"):
        await rows(over, "SELECT b FROM t")


async def test_database_cannot_be_written(postgres: Server) -> None:
    """A function in a view may write, so the connection must be read-only."""
    name = made(postgres, "a bigint")
    postgres.execute(
        f"CREATE FUNCTION w_{name}() RETURNS int LANGUAGE sql AS"
        f" 'INSERT INTO {name} VALUES (1) RETURNING 1'",
        f"CREATE VIEW {name}_v AS SELECT w_{name}() AS b",
    )
    over = session({"t": remote.resolved(postgres, f"{name}_v")})
    with pytest.raises(ExecutionError, match="read-only transaction"):
        await rows(over, "SELECT b FROM t")
    assert postgres.rows(f"SELECT * FROM {name}") == []


async def test_server_that_dies_while_rows_flow_is_an_error(postgres: Server) -> None:
    name = made(postgres, "a bigint", "INSERT INTO {} SELECT i FROM generate_series(1, 9999) i")
    postgres.execute(f"CREATE VIEW {name}_v AS SELECT a, pg_sleep(0.01)::text AS b FROM {name}")
    over = session({"t": remote.resolved(postgres, f"{name}_v")})
    asking = asyncio.create_task(rows(over, "SELECT a, b FROM t"))
    running = f"FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY%{name}_v%'"
    await asyncio.to_thread(until, lambda: bool(postgres.rows(f"SELECT 1 {running}")), "it runs")
    postgres.execute(f"SELECT pg_terminate_backend(pid) {running}")
    with pytest.raises(ExecutionError, match="terminating connection"):
        await asking


def test_driver_that_is_not_installed_is_an_error_of_the_dataset(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(DatasetError, match=r"pip install 'caraway\[postgres\]'") as caught:
        remote.resolved(postgres, "t")
    assert caught.value.type == "unsupported"
