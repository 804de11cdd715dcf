"""Each writable database merges rows as SQL says, all of them or none, or refuses it."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, InvalidQueryError, QueryError
from caraway_core.loading import registry
from caraway_core.tables import MemoryTable
from caraway_engine.sessions.sessions import Session
from tests.conformance.written_databases import (
    BEFORE,
    KINDS,
    LAKES,
    Kind,
    connector,
    create,
    create_rows,
    keyed,
    kind,
    mariadb_server,
    of,
    read_rows,
    refused,
    write,
)
from tests.kit.engine import rows

__all__ = ["connector", "keyed", "kind", "mariadb_server"]
SOURCE = pa.table({"id": [2, 3, 4, None], "n": [22, 33, 44, 55], "v": ["B", None, "D", "E"]})
UPSERT = (
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n, v = s.v "
    "WHEN NOT MATCHED THEN INSERT (id, n, v) VALUES (s.id, s.n, s.v)"
)


def made(
    kind: Kind,
    source: pa.Table = SOURCE,
    key: str = "id BIGINT PRIMARY KEY",
    text: str = "VARCHAR(5)",
) -> Session:
    create_rows(kind, key, text)
    return of(kind, "t", s=MemoryTable(source.schema, source))


def test_every_merger_has_a_class_here() -> None:
    names = registry.REMOTE_READERS
    assert set(KINDS) == {each for each in names if registry.database_reader(each).is_merging}


async def test_rows_are_updated_and_inserted(kind: Kind) -> None:
    over = made(kind, SOURCE.slice(0, 3))
    assert await write(over, UPSERT) == 3
    assert await read_rows(over) == [
        BEFORE[0], {"id": 2, "n": 22, "v": "B"}, {"id": 3, "n": 33, "v": None},
        {"id": 4, "n": 44, "v": "D"},
    ]  # fmt: skip
    assert await write(over, UPSERT) == 3


async def test_clauses_are_tried_in_order(kind: Kind, connector: str) -> None:
    over = made(kind)
    sql = """
    MERGE INTO t AS x USING (SELECT id + 0 AS k, n AS m FROM s WHERE id IS NOT NULL) AS y
    ON (y.k = x.id AND y.m < 100)
    WHEN MATCHED AND m = 33 THEN DELETE
    WHEN MATCHED AND y.m > 30 THEN UPDATE SET v = 'no'
    WHEN MATCHED THEN UPDATE SET n = CASE WHEN y.m > 1 THEN y.m * 2 ELSE 0 END
    WHEN NOT MATCHED AND k > 100 THEN INSERT (id) VALUES (k)
    WHEN NOT MATCHED BY TARGET THEN INSERT (id, v) VALUES (y.k * 10, 'new')
    """
    assert await write(over, sql) == 3
    default = None if connector in LAKES else 7
    assert await read_rows(over) == [
        BEFORE[0], {"id": 2, "n": 44, "v": "b"}, {"id": 40, "n": default, "v": "new"},
    ]  # fmt: skip


async def test_a_key_that_is_null_is_equal_to_none(kind: Kind) -> None:
    over = made(kind, key="id BIGINT")
    kind.run("INSERT INTO t VALUES (NULL, 1, 'z')")
    assert await write(over, UPSERT) == 4
    assert (await read_rows(over))[-2:] == [
        {"id": None, "n": 1, "v": "z"}, {"id": None, "n": 55, "v": "E"},
    ]  # fmt: skip


TEXTS = {
    "mysql": "VARCHAR(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "sqlite": "VARCHAR(5) COLLATE NOCASE",
}


async def test_texts_are_equal_if_their_bytes_are(kind: Kind, connector: str) -> None:
    source = pa.table({"id": [7, 8, 9], "n": [1, 2, 3], "v": ["a", "A", "b "]})
    over = made(kind, source, text=TEXTS.get(connector, "VARCHAR(5)"))
    sql = (
        "MERGE INTO t USING s ON t.v = s.v WHEN MATCHED THEN UPDATE SET n = s.n "
        "WHEN NOT MATCHED THEN INSERT (id, n, v) VALUES (s.id, s.n, s.v)"
    )
    assert await write(over, sql) == 3
    assert [(each["id"], each["n"], each["v"]) for each in await read_rows(over)] == [
        (1, 1, "a"), (2, None, "b"), (3, 30, None), (8, 2, "A"), (9, 3, "b "),
    ]  # fmt: skip


async def test_parameters_are_values(kind: Kind) -> None:
    over = made(kind)
    sql = "MERGE INTO t USING s ON t.id = s.id AND s.id = $1 WHEN MATCHED THEN UPDATE SET v = $2"
    for hostile in ("');--", "\\'--", "\\", "'||'", "%s", "${x}"):
        assert await write(over, sql, parameters={"1": 2, "2": hostile}) == 1
        assert (await read_rows(over))[1]["v"] == hostile


async def test_names_are_taken_as_they_are(kind: Kind) -> None:
    names = ['a"b', "a`b", "%s", "select", "x'; DROP TABLE t; --", "Ü"]
    create(kind, "odd", ", ".join(f"{kind.quoted(each)} INTEGER" for each in names))
    kind.run(f"INSERT INTO {kind.quoted('odd')} VALUES (0, 1, 2, 3, 4, 5)")
    over = of(kind, "odd", s=MemoryTable(SOURCE.schema, SOURCE.slice(0, 1)))
    for number, name in enumerate(names):
        quoted = '"' + name.replace('"', '""') + '"'
        other = '"' + names[number - 1].replace('"', '""') + '"'
        (before,) = await rows(over, "SELECT * FROM t")
        sql = f"MERGE INTO t USING (SELECT {before[name]} AS k) s ON t.{quoted} = s.k "
        assert await write(over, f"{sql} WHEN MATCHED THEN UPDATE SET {other} = s.k + 10") == 1
        expected = {**before, names[number - 1]: before[name] + 10}
        assert await rows(over, "SELECT * FROM t") == [expected]


TWICE = pa.table({"id": [2, 2, 9, 9], "n": [1, 2, 3, 4], "v": ["x", "y", "z", "z"]})


async def test_a_row_is_not_changed_twice(kind: Kind) -> None:
    over = made(kind, TWICE, key="id BIGINT")
    error = await refused(over, UPSERT, "by more than one row of the source", "no row was changed")
    assert isinstance(error, InvalidQueryError)
    one = UPSERT.replace("WHEN MATCHED", "WHEN MATCHED AND s.n = 2")
    assert await write(over, one) == 3
    assert [each["n"] for each in await read_rows(over)] == [10, 2, 30, 3, 4]


FAILING: Sequence[tuple[str, Sequence[str]]] = [
    ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n * 1000",
     ["no row was changed"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1 / (s.n - 33)",
     ["ivi"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n * 10000000000",
     ["no row was changed"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n / s.n",
     ["may compute t.n / s.n otherwise", "USING (SELECT ...)"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + s.n * 100000000",
     ["no row was changed"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = n",
     ["ambiguous"]),
    ("MERGE INTO t USING s ON t.id = s.id AND t.n / 2 > 3 WHEN MATCHED THEN DELETE",
     ["may compute t.n / 2 > 3 otherwise"]),
    ("MERGE INTO t USING s ON t.id < s.id WHEN MATCHED THEN DELETE",
     ["by more than one row of the source"]),
    ("MERGE INTO t USING s ON s.id = 1 WHEN MATCHED THEN DELETE", ["compares no column"]),
    ("MERGE INTO t USING s ON id = s.id WHEN MATCHED THEN DELETE", ["ambiguous"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1, n = 2",
     ["uplicate column"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = s.n",
     ["of the other side alone"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (t.n)",
     ["of the other side alone"]),
    ("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET away = 1", ["away"]),
    ("MERGE INTO t USING away AS s ON t.id = s.id WHEN MATCHED THEN DELETE", ["away"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "words"), FAILING)
async def test_what_fails_changes_nothing(kind: Kind, sql: str, words: Sequence[str]) -> None:
    await refused(made(kind), sql, *words)


async def test_a_column_that_compares_otherwise_is_refused(kind: Kind) -> None:
    create(kind, "t", "id DOUBLE PRECISION, n INTEGER")
    over = of(kind, "t", s=MemoryTable(SOURCE.schema, SOURCE))
    sql = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    with pytest.raises(InvalidQueryError, match="may compare column 'id' otherwise"):
        await write(over, sql)


async def test_only_those_who_may_write_merge(kind: Kind) -> None:
    over = made(kind)
    with pytest.raises(QueryError, match="read-only"):
        await rows(over, UPSERT)
    assert await read_rows(over) == BEFORE


def merged(
    before: Sequence[Mapping[str, Any]], source: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return what the MERGE of the random test makes of rows, one after the other."""
    after = {each["id"]: dict(each) for each in before}
    for each in source:
        key, n = each["id"], each["n"]
        if key in {row["id"] for row in before}:
            if n % 3 == 0:
                del after[key]
            elif n % 3 == 1:
                after[key]["n"] = n
        elif n % 2 == 0:
            after[key] = {"id": key, "n": n, "v": "i"}
    return sorted(after.values(), key=lambda row: row["id"])


async def test_random_rows_are_merged_as_a_model_does(kind: Kind) -> None:
    sql = """
    MERGE INTO t USING s ON t.id = s.id
    WHEN MATCHED AND s.n % 3 = 0 THEN DELETE
    WHEN MATCHED AND s.n % 3 = 1 THEN UPDATE SET n = s.n
    WHEN NOT MATCHED AND s.n % 2 = 0 THEN INSERT VALUES (s.id, s.n, 'i')
    """
    drawn = random.Random(7)
    for _ in range(5):
        keys = drawn.sample(range(40), 20)
        source = pa.table({"id": keys, "n": [drawn.randrange(900) for _ in keys]})
        over = made(kind, source)
        held = [{"id": key, "n": key, "v": "o"} for key in drawn.sample(range(40), 20)]
        kind.run("DELETE FROM t", *(
            f"INSERT INTO t VALUES ({each['id']}, {each['n']}, 'o')" for each in held
        ))  # fmt: skip
        expected = merged(held, source.to_pylist())
        await write(over, sql)
        assert await read_rows(over) == expected


async def test_rows_that_fail_late_change_nothing(kind: Kind) -> None:
    over = made(kind)
    await refused(
        over,
        "MERGE INTO t USING (SELECT value AS k, 10 / (20000 - value) AS m "
        "FROM generate_series(1, 30000)) AS g ON t.id = g.k WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (k, m)",
        "ivi",
    )


async def test_a_key_is_kept_once(keyed: Kind) -> None:
    sql = "MERGE INTO t USING s ON t.id = s.id + 100 WHEN NOT MATCHED THEN INSERT (id) VALUES (1)"
    await refused(made(keyed), sql, "no row was changed")


async def test_a_view_is_not_merged_into(keyed: Kind) -> None:
    create(keyed, "t2", "id BIGINT PRIMARY KEY, n INTEGER, v VARCHAR(5)")
    for sql in ("DROP VIEW IF EXISTS w", "CREATE VIEW w AS SELECT id, n + 1 AS n, v FROM t2"):
        keyed.run(sql)
    over = of(keyed, "w", s=MemoryTable(SOURCE.schema, SOURCE))
    with pytest.raises((ExecutionError, InvalidQueryError), match="no row was changed"):
        await write(over, UPSERT)
