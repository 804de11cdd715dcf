import asyncio
import contextlib
import gc
import weakref
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import (
    InvalidQueryError,
    OutOfMemoryQueryError,
    ParametersError,
    QueryError,
    QueryForbiddenError,
    TableNotFoundError,
)
from caraway_core.ids import CatalogVersion, PrincipalId, TableName
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.tables import TableSpec
from caraway_engine.execution.contexts import Pools
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.scans import tables
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session, snapshot

PEOPLE = memory(id=[1, 2, 3], name=["Ann", "Bob", None], Age=[30, 40, 50])


@pytest.mark.parametrize(
    ("sql", "parameters", "answer"),
    [
        ("SELECT id FROM people WHERE name = :n", {"n": "Bob"}, [{"id": 2}]),
        ("SELECT id FROM people WHERE id IN ($1, $2)", {"1": 1, "2": 3}, [{"id": 1}, {"id": 3}]),
        ("SELECT id FROM people WHERE id > ? ORDER BY id LIMIT ?", {"1": 1, "2": 1}, [{"id": 2}]),
        ("SELECT :x AS x", {"x": None}, [{"x": None}]),
        ("SELECT :x AS x", {"x": "'; DROP TABLE people --"}, [{"x": "'; DROP TABLE people --"}]),
        ("SELECT :x + 1 AS x", {"x": 1.5}, [{"x": 2.5}]),
        ("SELECT date '2024-01-01' < :d AS x", {"d": "2024-02-01"}, [{"x": True}]),
        ("SELECT array_length(:a) AS n", {"a": [1, 2]}, [{"n": 2}]),
        ("SELECT id FROM people WHERE array_has(:a, id)", {"a": [3]}, [{"id": 3}]),
    ],
)  # fmt: skip
async def test_values_are_bound_with_their_types(
    sql: str, parameters: dict[str, Any], answer: list[dict[str, Any]]
) -> None:
    assert await rows(session({"people": PEOPLE}), sql, parameters=parameters) == answer


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("SELECT * FROM peple", TableNotFoundError,
         "table 'peple' not found; did you mean 'people'? Known tables: people."),
        ("SELECT nam FROM people", InvalidQueryError,
         "column 'nam' not found; did you mean 'people.name'?"),
        ("SELECT age FROM people", InvalidQueryError, "Names with capitals need double quotes"),
        ("SELEC 1", InvalidQueryError, "syntax error: Expected: an SQL statement, found: SELEC"),
        ("SELECT 1; SELECT 2", InvalidQueryError, "one statement at a time"),
        ("SELECT fooo(1)", InvalidQueryError, "function 'fooo' not found"),
        ("SELECT 1/0", InvalidQueryError, "division by zero"),
        ("SELECT CAST(name AS INT) FROM people", InvalidQueryError, "'Ann' is not a valid INT"),
        ("SELECT * FROM '/etc/passwd'", TableNotFoundError,
             "table '/etc/passwd' not found"),
        ("SELECT :x", ParametersError, "no value for parameter $x"),
        ("CREATE TABLE x AS SELECT 1", InvalidQueryError, "CREATE TABLE is not supported"),
        ("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'", InvalidQueryError,
         "CREATE EXTERNAL TABLE is not supported"),
        ("DROP TABLE people", InvalidQueryError, "DROP TABLE is not supported"),
        ("COPY people TO '/tmp/x.csv'", InvalidQueryError, "COPY is not supported"),
        ("SET datafusion.execution.batch_size = 1", InvalidQueryError,
         "SET is not supported"),
        ("INSERT INTO people VALUES (9, 'x', 1)", QueryForbiddenError, "Insert Into is refused"),
        ("EXPLAIN ANALYZE INSERT INTO people VALUES (9, 'x', 1)", QueryForbiddenError, "refused"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, InvalidQueryError, "levels of parentheses"),
    ],
)  # fmt: skip
async def test_each_mistake_has_its_error(sql: str, error: type[QueryError], message: str) -> None:
    with pytest.raises(error) as caught:
        await rows(session({"people": PEOPLE}), sql)
    assert type(caught.value) is error
    assert message in caught.value.message
    assert "DataFusion" not in caught.value.message


async def test_session_works_on_after_an_error() -> None:
    people = session({"people": PEOPLE})
    with pytest.raises(InvalidQueryError):
        await rows(people, "SELECT nope FROM people")
    assert await rows(people, "SELECT count(*) AS n FROM people") == [{"n": 3}]


async def test_views_may_read_views_in_any_order() -> None:
    made = session({"b": "SELECT * FROM a", "a": "SELECT id FROM people", "people": PEOPLE})
    assert await rows(made, "SELECT sum(id) AS s FROM b") == [{"s": 6}]


def test_view_that_cannot_be_planned_fails_alone() -> None:
    made = Session(
        EngineSettings(2),
        snapshot({"people": PEOPLE, "good": "SELECT 1 AS x", "bad": "SELECT * FROM gone",
                  "worse": "SELECT * FROM bad"}),
    )  # fmt: skip
    failed = made.install(None)
    assert set(failed) == {"bad", "worse"}
    assert "table 'gone' not found" in failed[TableName("bad")]


async def test_qualified_names_make_schemas() -> None:
    made = session({"sales.orders": PEOPLE, "Quoted": PEOPLE})
    assert await rows(made, "SELECT count(*) AS n FROM sales.orders") == [{"n": 3}]
    assert await rows(made, 'SELECT count(*) AS n FROM "Quoted"') == [{"n": 3}]


async def test_system_tables_show_the_moment_and_are_never_cached() -> None:
    calls: list[int] = []

    def make(_viewer: PrincipalId | None) -> pa.Table:
        calls.append(1)
        return pa.table({"n": [len(calls)]})

    made = session({}, {"counter": make})
    first = await rows(made, "SELECT n FROM runtime.counter")
    second = await rows(made, "SELECT n FROM runtime.counter")
    assert first[0]["n"] < second[0]["n"]
    listed = await rows(
        made, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'runtime'"
    )
    assert listed == [{"table_name": "counter"}]
    assert not made.start(Statement("SELECT n FROM runtime.counter", {})).reads_only_catalog


@pytest.mark.parametrize(
    ("sql", "is_stable"),
    [
        ("SELECT * FROM people", True),
        ("SELECT now()", False),
        ("SELECT random() FROM people", False),
        ("EXPLAIN SELECT 1", False),
        ("SHOW TABLES", False),
    ],
)
def test_statements_that_depend_on_the_moment_are_told_apart(sql: str, is_stable: bool) -> None:
    stream = session({"people": PEOPLE}).start(Statement(sql, {}))
    assert stream.reads_only_catalog is is_stable


async def test_insert_goes_to_writable_tables_only() -> None:
    made = session({"people": PEOPLE, "log": memory(a=[1])})
    writable = frozenset({TableName("log")})
    insert = made.start(Statement("INSERT INTO log VALUES (2)", {}, True, writable))
    assert insert.written == "log"
    assert [batch.to_pylist() async for batch in insert] == [[{"count": 1}]]
    assert await rows(made, "SELECT sum(a) AS s FROM log") == [{"s": 3}]
    with pytest.raises(QueryForbiddenError, match="dataset 'people' is read-only"):
        made.start(Statement("INSERT INTO people VALUES (1, 'x', 2)", {}, True, writable))
    with pytest.raises(InvalidQueryError, match="use EXPLAIN"):
        made.start(Statement("EXPLAIN ANALYZE INSERT INTO log VALUES (3)", {}, True, writable))
    explained = made.start(Statement("EXPLAIN INSERT INTO log VALUES (3)", {}, True, writable))
    assert [batch async for batch in explained]
    assert await rows(made, "SELECT sum(a) AS s FROM log") == [{"s": 3}]
    with pytest.raises(InvalidQueryError, match="COPY"):
        made.start(Statement("COPY log TO '/tmp/x.csv'", {}, True, writable))


async def test_rows_written_survive_a_new_snapshot() -> None:
    spec = memory(a=[1])
    first = session({"log": spec})
    writable = frozenset({TableName("log")})
    async for _ in first.start(Statement("INSERT INTO log VALUES (2)", {}, True, writable)):
        pass
    second = Session(EngineSettings(2), snapshot({"log": spec, "people": PEOPLE}, version=2))
    assert second.install(first) == {}
    assert await rows(second, "SELECT count(*) AS n FROM log") == [{"n": 2}]


async def test_query_over_the_memory_limit_fails_and_the_next_one_works() -> None:
    made = session({}, memory_limit_bytes=2_000_000)
    with pytest.raises(OutOfMemoryQueryError, match=r"runtime\.query\.memory_limit"):
        await rows(
            made,
            "SELECT count(*) FROM generate_series(1, 2000000) a JOIN generate_series(1, 2000000) b "
            "ON a.value = b.value",
        )
    assert await rows(made, "SELECT 1 AS x") == [{"x": 1}]


async def test_cancelled_wait_ends_the_query() -> None:
    made = session({})
    stream = made.start(Statement("SELECT sum(value) FROM generate_series(1, 100000000000)", {}))
    waiting = asyncio.ensure_future(anext(aiter(stream)))
    await asyncio.wait((waiting,), timeout=0.05)
    assert not waiting.done()
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    with pytest.raises(StopAsyncIteration):
        await anext(aiter(stream))
    assert await rows(made, "SELECT 1 AS x") == [{"x": 1}]


async def test_limit_over_a_computed_key_does_not_cut_the_distinct_rows_below() -> None:
    """DataFusion 55 would take `c`, computed, for the `c` that it is computed from."""
    made = session({"l": memory(n=[1, 2, 3, 5, 7, 8])})
    sql = (
        "SELECT * FROM (SELECT (c % 5) AS c FROM (SELECT DISTINCT n AS c FROM l "
        "UNION SELECT (n + 1) AS c FROM l)) ORDER BY c LIMIT 1"
    )
    assert await rows(made, sql) == [{"c": 0}]


async def test_session_is_there_for_as_long_as_a_stream_of_it() -> None:
    made = session({"people": PEOPLE})
    seen = weakref.ref(made)
    stream = made.start(Statement("SELECT id FROM people", {}))
    del made
    gc.collect()
    assert seen() is not None
    await stream.aclose()
    del stream
    gc.collect()
    assert seen() is None


def _next(before: Session, specs: dict[str, Any], version: int) -> Session:
    made = Session(EngineSettings(2), snapshot(specs, version=version))
    assert made.install(before) == {}
    return made


async def test_a_new_snapshot_registers_only_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = snapshot({**{f"t{n}": memory(a=[n]) for n in range(20)},
                      "v": "SELECT a FROM t1", "w": "SELECT a FROM v"}).tables  # fmt: skip
    first = Session(EngineSettings(2), CatalogSnapshot(CatalogVersion(1), specs, {}))
    assert first.install(None) == {}
    built: list[TableSpec] = []
    build = tables.build_table

    def counted(spec: Any) -> Any:
        built.append(spec)
        return build(spec)

    monkeypatch.setattr(tables, "build_table", counted)

    changed = memory(a=[100])
    second = Session(
        EngineSettings(2),
        CatalogSnapshot(CatalogVersion(2), {**specs, TableName("t1"): changed}, {}),
    )
    assert second.install(first) == {}
    assert built == [changed]
    assert await rows(second, "SELECT a FROM w") == [{"a": 100}]
    assert await rows(second, "SELECT a FROM t7") == [{"a": 7}]
    assert await rows(first, "SELECT a FROM w") == [{"a": 1}], "the one before stays as it was"


async def test_what_a_new_snapshot_leaves_out_is_gone_with_the_views_over_it() -> None:
    specs = snapshot({"a": memory(a=[1]), "b": memory(a=[2]), "v": "SELECT a FROM b"}).tables
    first = Session(EngineSettings(2), CatalogSnapshot(CatalogVersion(1), specs, {}))
    assert first.install(None) == {}
    less = {name: spec for name, spec in specs.items() if name != "b"}
    second = Session(EngineSettings(2), CatalogSnapshot(CatalogVersion(2), less, {}))
    assert set(second.install(first)) == {"v"}
    for table in ("b", "v"):
        with pytest.raises(TableNotFoundError):
            await rows(second, f"SELECT a FROM {table}")
    again = {**less, TableName("b"): memory(a=[3])}
    third = Session(EngineSettings(2), CatalogSnapshot(CatalogVersion(3), again, {}))
    assert third.install(second) == {}
    assert await rows(third, "SELECT a FROM v") == [{"a": 3}]


async def test_a_view_that_changes_changes_the_views_over_it() -> None:
    table = memory(a=[1])
    first = _next(Session(EngineSettings(2), snapshot({})), {}, 1)
    second = _next(first, {"t": table, "v": "SELECT a FROM t", "w": "SELECT a FROM v"}, 2)
    assert await rows(second, "SELECT a FROM w") == [{"a": 1}]
    views = {"v": "SELECT a + 1 AS a FROM t", "w": "SELECT a FROM v"}
    third = _next(second, {"t": table, **views}, 3)
    assert await rows(third, "SELECT a FROM w") == [{"a": 2}]


async def test_sessions_that_are_kept_share_one_memory_limit() -> None:
    settings = EngineSettings(1, 60_000_000)
    pools = Pools(settings)
    first, second = (Session(settings, snapshot({}, version=n), None, pools) for n in (1, 2))
    alone = Session(settings, snapshot({}))
    for each in (first, second, alone):
        assert each.install(None) == {}
    sql = (
        "SELECT a.value AS x, b.value AS y FROM generate_series(1, 1500000) a "
        "JOIN generate_series(1, 1500000) b ON a.value = b.value"
    )
    stream = first.start(Statement(sql, {}))
    await anext(aiter(stream))
    with pytest.raises(OutOfMemoryQueryError):
        await rows(second, f"SELECT count(*) AS n FROM ({sql})")
    assert await rows(alone, f"SELECT count(*) AS n FROM ({sql})") == [{"n": 1_500_000}]
    await stream.aclose()
