"""MERGE into databases whose conditions and values read the table, as PostgreSQL defines it."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.tables import MemoryTable
from tests.conformance.written_databases import (
    TEXTS,
    InPostgres,
    Kind,
    connector,
    create,
    create_rows,
    keyed,
    kind,
    mariadb_server,
    of,
    of_spec,
    over_tables,
    read_rows,
    refused,
    write,
)
from tests.kit.engine import rows

__all__ = ["connector", "keyed", "kind", "mariadb_server"]
SOURCE = pa.table({"id": [1, 2, 3, 4], "y": [5, 6, -7, 8], "w": ["a", "x", "b", None]})
ON = "MERGE INTO t USING s ON t.id = s.id "


def made(kind: Kind, source: pa.Table = SOURCE, key: str = "id BIGINT PRIMARY KEY") -> Any:
    create_rows(kind, key, TEXTS[type(kind).__name__])
    return of(kind, "t", s=MemoryTable(source.schema, source))


Row = tuple[int | None, int | None, str | None]
CASES: Sequence[tuple[str, int, Sequence[Row]]] = [
    ("WHEN MATCHED THEN UPDATE SET n = t.n + s.y",
     3, [(1, 15, "a"), (2, None, "b"), (3, 23, None)]),
    # Conditions that are NULL do not hold.
    ("WHEN MATCHED AND t.n > s.y THEN DELETE WHEN MATCHED AND t.n IS NULL THEN UPDATE SET n = 0",
     3, [(2, 0, "b")]),
    # What one clause sets is not seen by the next.
    ("WHEN MATCHED AND t.n = 10 THEN UPDATE SET n = 30 "
     "WHEN MATCHED AND t.n = 30 THEN UPDATE SET n = 10, v = 'x'",
     2, [(1, 30, "a"), (2, None, "b"), (3, 10, "x")]),
    # Columns are exchanged, as all values are read before one is set.
    ("WHEN MATCHED AND s.y > 0 THEN UPDATE SET n = t.id, id = t.id + 100 "
     "WHEN MATCHED THEN UPDATE SET v = s.w",
     3, [(3, 30, "b"), (101, 1, "a"), (102, 2, "b")]),
    # The first clause whose condition holds takes a row; conditions of the source are among them.
    ("WHEN MATCHED AND s.y < 0 THEN DELETE WHEN MATCHED AND n = 10 THEN UPDATE SET n = y "
     "WHEN MATCHED THEN UPDATE SET n = s.y * 2 WHEN NOT MATCHED THEN INSERT VALUES (s.id, y, w)",
     4, [(1, 5, "a"), (2, 12, "b"), (4, 8, None)]),
    ("WHEN MATCHED AND t.v = s.w THEN UPDATE SET n = NULL, v = NULL",
     1, [(1, None, None), (2, None, "b"), (3, 30, None)]),
    ("WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 7)",
     1, [(1, 10, "a"), (2, None, "b"), (3, 30, None), (4, 7, None)]),
]  # fmt: skip


@pytest.mark.parametrize(("clauses", "count", "after"), CASES)
async def test_values_of_the_table(
    kind: Kind, clauses: str, count: int, after: Sequence[Row]
) -> None:
    over = made(kind)
    assert await write(over, ON + clauses) == count
    assert [tuple(each.values()) for each in await read_rows(over)] == list(after)


async def test_rows_that_the_source_lacks(kind: Kind) -> None:
    over = made(kind, SOURCE.slice(1, 1))
    sql = (
        "WHEN NOT MATCHED BY SOURCE AND t.n > 20 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = t.n + 1, v = 'it''s' "
        "WHEN MATCHED THEN UPDATE SET n = 5"
    )
    assert await write(over, ON + sql) == 3
    assert [tuple(each.values()) for each in await read_rows(over)] == [
        (1, 11, "it's"), (2, 5, "b"),
    ]  # fmt: skip
    empty = of(kind, "t", s=MemoryTable(SOURCE.schema, SOURCE.slice(0, 0)))
    assert await write(empty, ON + "WHEN NOT MATCHED BY SOURCE THEN DELETE") == 2
    assert await read_rows(empty) == []


async def test_other_conditions_of_rows_that_are_the_same(kind: Kind) -> None:
    over = made(kind)
    sql = (
        "MERGE INTO t AS x USING (SELECT id AS k, y FROM s) AS q ON x.id = q.k AND x.n > q.y * 2 "
        "AND q.k < 3 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (k + 10, y, 'i')"
    )
    assert await write(over, sql) == 4
    assert [tuple(each.values()) for each in await read_rows(over)] == [
        (1, 10, "a"), (2, None, "b"), (3, 30, None),
        (11, 5, "i"), (12, 6, "i"), (13, -7, "i"), (14, 8, "i"),
    ]  # fmt: skip
    other = "MERGE INTO t USING s ON t.n = s.y * 2 OR t.id = s.id + 99 WHEN MATCHED THEN DELETE"
    assert await write(over, other) == 1


async def test_a_row_is_not_changed_twice(kind: Kind) -> None:
    twice = pa.table({"id": [1, 1, 3], "y": [1, 20, 3], "w": ["", "", ""]})
    over = made(kind, twice)
    error = await refused(
        over, ON + "WHEN MATCHED THEN UPDATE SET n = t.n + s.y",
        "by more than one row of the source", "no row was changed",
    )  # fmt: skip
    assert isinstance(error, InvalidQueryError)
    await refused(over, ON + "WHEN MATCHED AND t.n > 0 THEN DELETE", "by more than one row")
    # Only one of the two has a clause that takes the row.
    assert await write(over, ON + "WHEN MATCHED AND t.n > s.y THEN UPDATE SET n = s.y") == 2


async def test_parameters_are_values(kind: Kind) -> None:
    over = made(kind)
    sql = ON + "WHEN MATCHED AND t.v <> $1 AND t.id = $2 THEN UPDATE SET v = $1"
    last = "a"
    for hostile in ("');--", "\\'--", "\\", "'||'", "%s", "${x}", "{}", "a"):
        assert await write(over, sql, parameters={"1": hostile, "2": 1}) == 1
        assert (await read_rows(over))[0]["v"] == hostile != last
        last = hostile
    alone = "MERGE INTO t USING s ON t.id = s.id - 100 WHEN NOT MATCHED BY SOURCE AND t.v = $1 "
    sql = alone + "THEN UPDATE SET v = $2"
    assert await write(over, sql, parameters={"1": "b", "2": "'; --"}) == 1


async def test_names_are_taken_as_they_are(kind: Kind) -> None:
    names = ['a"b', "a`b", "%s", "select", "x'; DROP TABLE t; --", "Ü", "{}", "key0"]
    listed = ", ".join(f"{kind.quoted(each)} INTEGER" for each in names)
    create(kind, "odd", f"{listed}, id INTEGER PRIMARY KEY")
    kind.run(f"INSERT INTO {kind.quoted('odd')} VALUES (0, 1, 2, 3, 4, 5, 6, 7, 9)")
    source = pa.table({each: [number * 10] for number, each in enumerate(names)})
    over = of(kind, "odd", s=MemoryTable(source.schema, source))
    for number, name in enumerate(names):
        quoted = '"' + name.replace('"', '""') + '"'
        (before,) = await rows(over, "SELECT * FROM t")
        sql = f"MERGE INTO t USING s ON t.id = 9 + s.{quoted} * 0 WHEN MATCHED "
        sql += f"AND t.{quoted} >= 0 THEN UPDATE SET {quoted} = t.{quoted} + s.{quoted}"
        assert await write(over, sql) == 1
        expected = {**before, name: before[name] + number * 10}
        assert await rows(over, "SELECT * FROM t") == [expected]


async def test_tables_with_names_of_three_parts(kind: Kind) -> None:
    create_rows(kind)
    source = MemoryTable(SOURCE.schema, SOURCE)
    over = over_tables(lambda: {"c.s.t": of_spec(kind, "t"), "d.s.Src": source})
    sql = (
        'MERGE INTO c.s.t USING d.s."Src" ON t.id = "Src".id WHEN MATCHED AND t.n > 20 THEN '
        'UPDATE SET n = t.n + "Src".y WHEN NOT MATCHED BY SOURCE AND t.n IS NULL THEN DELETE'
    )
    (counted,) = await rows(over, sql, writable=frozenset({TableName("c.s.t")}))
    assert counted["count"] == 1
    found = await rows(over, "SELECT n FROM c.s.t WHERE id = 3")
    assert found == [{"n": 23}]


async def test_long_names_are_kept_apart(kind: Kind) -> None:
    names = ["x" * 60 + each for each in "ab"]
    create(kind, "t", "id INTEGER PRIMARY KEY, " + ", ".join(f"{each} INTEGER" for each in names))
    kind.run("INSERT INTO t VALUES (1, 2, 3)")
    source = pa.table({"id": [1], **{each: [place] for place, each in enumerate(names, 5)}})
    over = of(kind, "t", s=MemoryTable(source.schema, source))
    sets = ", ".join(f"{each} = s.{each}" for each in names)
    assert await write(over, f"{ON} WHEN MATCHED AND s.id > 1 THEN UPDATE SET {sets} "
                             f"WHEN MATCHED THEN UPDATE SET {sets}") == 1  # fmt: skip
    sums = ", ".join(f"{each} = t.{each} + s.{each}" for each in names)
    assert await write(over, f"{ON} WHEN MATCHED THEN UPDATE SET {sums}") == 1
    (found,) = await rows(over, "SELECT * FROM t")
    assert list(found.values()) == [1, 10, 12]


async def test_a_table_without_a_key(kind: Kind, connector: str) -> None:
    over = made(kind, key="id BIGINT")
    kind.run("INSERT INTO t VALUES (1, 50, 'a'), (NULL, 3, 'n')")
    sql = ON + "WHEN MATCHED THEN UPDATE SET n = t.n + s.y WHEN NOT MATCHED BY SOURCE THEN DELETE"
    if connector == "mysql":
        await refused(over, sql, "need a primary key", "no row was changed")
        return
    assert await write(over, sql) == 5
    assert [(each["id"], each["n"]) for each in await read_rows(over)] == [
        (1, 15), (1, 55), (2, None), (3, 23),
    ]  # fmt: skip


FAILING: Sequence[tuple[str, str]] = [
    ("WHEN MATCHED THEN UPDATE SET n = t.n * s.y * 100", "no row was changed"),
    ("WHEN MATCHED AND t.n > 0 THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (9, 1000)",
     "no row was changed"),
    ("WHEN MATCHED AND EXISTS (SELECT 1 FROM s AS z WHERE z.id = t.n) THEN DELETE",
     "no row was changed"),
    ("WHEN MATCHED AND random() < t.n THEN DELETE", "may compute random() < t.n otherwise"),
    ("WHEN MATCHED AND id > 3 THEN DELETE", "ambiguous"),
]  # fmt: skip


async def test_a_key_is_kept_once(keyed: Kind) -> None:
    clause = "WHEN MATCHED AND t.n > 0 THEN UPDATE SET id = 2 - 0 * t.id"
    await refused(made(keyed), ON + clause, "no row was changed")


@pytest.mark.parametrize(("clauses", "words"), FAILING)
async def test_what_fails_changes_nothing(kind: Kind, clauses: str, words: str) -> None:
    await refused(made(kind), ON + clauses, words)


async def test_parts_of_a_table_of_postgres(request: pytest.FixtureRequest) -> None:
    kind = InPostgres(request.getfixturevalue("tmp_path"), request)
    kind.run(
        "DROP TABLE IF EXISTS p", "CREATE TABLE p (id int8, n int4) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)",
        "INSERT INTO p VALUES (1, 1), (11, 2)",
    )  # fmt: skip
    source = pa.table({"id": [1, 11], "y": [10, 20]})
    over = of(kind, "p", s=MemoryTable(source.schema, source))
    sql = ON + "WHEN MATCHED THEN UPDATE SET n = t.n + s.y, id = t.id + 1"
    assert await write(over, sql) == 2
    found = sorted(tuple(each.values()) for each in await rows(over, "SELECT id, n FROM t"))
    assert found == [(2, 11), (12, 22)]
