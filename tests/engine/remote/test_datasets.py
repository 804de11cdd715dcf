"""Scans of remote tables: their statements, compared with a database that is the engine itself."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from datafusion import SessionConfig, SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.tables import RemoteSplit
from caraway_engine.remote import answers, datasets, opened
from caraway_engine.remote.opened import OpenedReads
from tests.kit.own_database import ROWS, Database, remote


@pytest.fixture
def database() -> Database:
    made = Database()
    answers.use("itself", made)
    return made


def query(sql: str, splits: Sequence[RemoteSplit] = ()) -> list[dict[str, Any]]:
    context = SessionContext(SessionConfig().with_target_partitions(2))
    context.register_table("t", datasets.build(remote(splits), splits))
    found: list[dict[str, Any]] = context.sql(sql).to_arrow_table().to_pylist()
    return found


def expected(sql: str) -> list[dict[str, Any]]:
    context = SessionContext()
    context.from_arrow(ROWS, name="t")
    found: list[dict[str, Any]] = context.sql(sql).to_arrow_table().to_pylist()
    return found


CONDITIONS = [
    "true", "false", "id > 2", "id >= -6 AND id < 0", "id IS NULL", "id IS NOT NULL", "n = 1",
    "n <> 1", "NOT (n = 1)", "id IN (1, 2, NULL)", "id NOT IN (1, 2)", "id + 1 > n", "id = n",
    "n IS NULL OR id > 3", '"o d""d" BETWEEN 3 AND 7', "abs(id) = 2", "id % 2 = 0 AND n > 0",
    "coalesce(n, 5) = 5", "id > 9223372036854775806", "CASE WHEN n = 1 THEN id > 0 ELSE n = 2 END",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("columns", ["*", "n", '"o d""d" AS o, id', "count(*) AS c", "1 AS one"])
def test_rows_are_those_that_the_engine_keeps(
    database: Database, condition: str, columns: str
) -> None:
    sql = f"SELECT {columns} FROM t WHERE {condition}"
    assert sorted(map(str, query(sql))) == sorted(map(str, expected(sql)))


def test_only_columns_that_are_needed_are_asked_for(database: Database) -> None:
    query("SELECT n FROM t WHERE id > 2")
    query("SELECT count(*) AS c FROM t")
    query("SELECT n FROM t WHERE abs(id) = 2")
    first, second, third = database.sent
    listed, _, where = first.partition(' FROM "s x"."t""t" WHERE ')
    assert '"n"' in listed and '"id"' not in listed
    assert '"id" >' in where
    # A count reads one column, and the column of a condition that cannot be sent is read.
    assert '"id"' in second and '"n"' not in second
    assert '"id"' in third and "o d" not in third


BOUND = st.none() | st.integers(-8, 8)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-8, 8), unique=True, max_size=5).map(sorted), st.data())
def test_splits_have_every_row_once_and_rows_without_a_key_in_the_first(
    cuts: list[int], data: st.DataObject
) -> None:
    answers.use("itself", Database())
    bounds = [None, *cuts, None]
    splits = [RemoteSplit("id", low, high, 0) for low, high in pairwise(bounds)]
    found = [query("SELECT * FROM t", [each]) for each in splits]
    assert sorted(map(str, (row for each in found for row in each))) == sorted(
        map(str, ROWS.to_pylist())
    )
    for number, each in enumerate(found):
        assert (number == 0) == any(row["id"] is None for row in each)
    some = data.draw(st.lists(st.sampled_from(range(len(splits))), unique=True, min_size=1))
    together = query("SELECT * FROM t WHERE n = 1", [splits[number] for number in some])
    apart = [row for number in some for row in found[number] if row["n"] == 1]
    assert sorted(map(str, together)) == sorted(map(str, apart))


@pytest.mark.parametrize(
    ("low", "high", "sql"),
    [
        (None, None, '(TRUE OR "k""k" IS NULL)'),
        (None, 5, '("k""k" < 5 OR "k""k" IS NULL)'),
        (-5, None, '("k""k" >= -5)'),
        (0, 0, '("k""k" >= 0 AND "k""k" < 0)'),
    ],
)
def test_a_split_is_a_condition(low: int | None, high: int | None, sql: str) -> None:
    assert datasets.in_split(remote(), RemoteSplit('k"k', low, high, 0)) == sql


def test_scans_of_a_plan_that_was_left_send_nothing(database: Database) -> None:
    reads = OpenedReads()
    context = SessionContext()
    context.register_table("t", datasets.build(remote()))
    with opened.noted(reads):
        stream = context.sql("SELECT id FROM t").execute_stream()
    reads.close()
    assert [batch for batch in stream if batch.to_pyarrow().num_rows] == []


def test_the_statements_of_a_plan_are_known_when_it_starts(database: Database) -> None:
    reads = OpenedReads()
    context = SessionContext()
    context.register_table("t", datasets.build(remote()))
    frame = context.sql("SELECT a.id FROM t a JOIN t b ON a.id = b.n WHERE a.id > 0")
    with opened.noted(reads):
        frame.execution_plan()
    assert len(reads.planned) == 2
    assert all(each.sql.startswith("SELECT ") for each in reads.planned)
