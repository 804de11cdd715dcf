"""Tests of lists and their combinations know NULL, wherever they are written."""

import asyncio

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.known_faults import merged_lists, syntax
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

ROWS = pa.table({"k": pa.array([None, 1, 2, 3], pa.int64()), "v": pa.array([1, 2, 3, 4])})
LISTS = st.sampled_from(
    ["k IN (1, 2)", "k IN (3, 4)", "k IN (2, NULL)", "k IN (v, 2)", "k NOT IN (1, 2)",
     "k NOT IN (3)", "k NOT IN (1, NULL)", "(k = 1 OR k = 2)", "(3 = k OR k = 4 OR v = 9)",
     "NOT (k <> 1 AND k <> 3)", "NOT (k = 3 OR k = 4)", "k = ANY([3, 4])", "k = 2"]
)  # fmt: skip
CONDITIONS = st.builds(
    "{}({}) {} {}({})".format,
    st.sampled_from(["", "NOT "]), LISTS, st.sampled_from(["AND", "OR"]),
    st.sampled_from(["", "NOT "]), LISTS,
)  # fmt: skip
SHAPES = st.sampled_from([
    "SELECT v, {0} AS x FROM t",
    "SELECT v FROM t WHERE {0}",
    "SELECT v FROM t WHERE NOT ({0})",
    "SELECT v FROM t WHERE ({0}) IS NULL",
    "SELECT v, CASE WHEN {0} THEN {1} ELSE false END AS x FROM t",
    "SELECT {0} AS x, min(v) AS v FROM t GROUP BY {0}",
    "SELECT v, a AND b AS x FROM (SELECT v, {0} AS a, {1} AS b FROM t) q",
    "WITH c AS (SELECT k, v, {0} AS a FROM t) SELECT v FROM c WHERE NOT (a OR {1})",
])  # fmt: skip


@pytest.fixture(scope="module")
def made() -> Session:
    return session({"t": memory(k=ROWS.column("k"), v=ROWS.column("v"))})


@settings(max_examples=80)
@given(shape=SHAPES, first=CONDITIONS, second=LISTS)
def test_lists_are_kept_apart(made: Session, shape: str, first: str, second: str) -> None:
    sql = f"SELECT * FROM ({shape.format(first, second)}) r ORDER BY v"
    t = ROWS  # noqa: F841 # read by name
    expected = duckdb.sql(sql).to_arrow_table().to_pylist()
    assert asyncio.run(rows(made, sql)) == expected


async def test_a_view_does_not_share_its_list_with_what_reads_it() -> None:
    made = session({
        "t": memory(k=ROWS.column("k"), v=ROWS.column("v")),
        "tested": "SELECT k, v, k NOT IN (1, 2) AS a FROM t",
    })  # fmt: skip
    found = await rows(made, "SELECT v FROM tested WHERE a OR k NOT IN (3, 4) ORDER BY v")
    assert [row["v"] for row in found] == [2, 3, 4]


async def test_chains_without_a_word_for_lists_are_kept_apart(made: Session) -> None:
    condition = "(NOT (k <> 1 AND k <> 2) AND NOT (k <> 3 AND k <> 4)) IS NULL"
    found = await rows(made, f"SELECT v FROM t WHERE {condition}")
    assert [row["v"] for row in found] == [1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v FROM t WHERE k IN (1, 2) AND (k IN (2, 3) OR k = 4 OR k = 5)",
        "SELECT sum(CASE WHEN k = 1 OR k = 2 THEN 1 END), k IN (1) FROM t",
        "SELECT v FROM t JOIN u ON t.k IN (1, 2) AND u.k IN (1, 3) WHERE t.k <> 1 AND t.k <> 2",
        "SELECT v FROM t WHERE NOT (k IN (1, 2) AND v IN (3))",
        "SELECT v FROM t WHERE (k, v) IN ((1, 2)) OR NOT (k, v) IN ((2, 3))",
    ],
)
def test_lists_that_are_merged_rightly_stay(sql: str) -> None:
    (statement,) = syntax.parse(sql)
    assert not merged_lists.mend(statement, sql, is_view=False)
