"""Columns are compared with columns that are constants, and with constants, at once."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.known_faults import constant_columns, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from tests.differential import asking, datasets, runners
from tests.differential.asking import Runner
from tests.differential.datasets import Dataset
from tests.engine.known_faults.memory import duckdb_over

ROWS = pa.table({
    "k": pa.array([1, 2, 2, 3, None], pa.int64()),
    "s": pa.array(["a", "a", "b", None, ""]),
})  # fmt: skip
VIEWS = {"labelled": "SELECT 'a' AS x, 2 AS d, k, s FROM t"}
_KINDS = st.sampled_from([
    "(SELECT 'a' AS x, 2 AS d, k, s FROM t{0}) AS q", "labelled AS q",
    "(SELECT upper('A') AS x, CAST(2 AS SMALLINT) AS d, k, s FROM t{0}) AS q",
    "(SELECT 'a' AS x, 2 AS d, k, s FROM t{0} UNION ALL SELECT 'b', 3, k, s FROM t) AS q",
])  # fmt: skip
_INNER = st.sampled_from(["", " WHERE s = 'a'", " WHERE k = 2", " WHERE k > 1 AND s <> ''"])
_COMPARED = st.sampled_from(
    ["x = s", "s = x", "q.x = q.s", "k = d", "d = k", "d + 0 = k", "x <= s", "d < k", "k >= d - 1",
     "s = 'a'", "'a' = s", "k = 2", "k < 3"]
)  # fmt: skip
_WHERE = st.lists(_COMPARED, min_size=1, max_size=4, unique=True).map(" AND ".join)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    folder: Path = tmp_path_factory.mktemp("labelled")
    datasets.write(folder / "t", ROWS)
    with asking.opened(runners.single_node, Dataset("labelled", folder, VIEWS)) as opened:
        yield opened


@settings(max_examples=100)
@given(relation=_KINDS, inner=_INNER, where=_WHERE)
def test_rows_are_found(labelled: Runner, relation: str, inner: str, where: str) -> None:
    sql = f"SELECT x, d, k, s FROM {relation.format(inner)} WHERE {where}"
    answer = labelled.outcome(sql)
    assert isinstance(answer, pa.Table), answer
    expected = duckdb_over({"t": ROWS}, VIEWS).execute(sql).fetchall()
    found = zip(*(column.to_pylist() for column in answer.columns), strict=True)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM t WHERE k = d",
        "SELECT t.k FROM t JOIN u ON t.k = u.k WHERE t.k = u.d AND t.k = 2",
        "SELECT k FROM (SELECT 2 AS d, k FROM t) q WHERE k = 2 AND 3 = d",
        "SELECT q.k FROM (SELECT 2 AS d, k FROM t) q, u WHERE q.k = u.d",
    ],
)
def test_other_comparisons_stay(sql: str) -> None:
    context = SessionContext()
    for name in "tu":
        context.from_pydict({"k": [1], "d": [2]}, name=name)
    (statement,) = syntax.parse(sql)
    top = next(scopes.scopes(statement))
    before = syntax.restored(statement)
    assert not constant_columns.mend(top, Types(context))
    assert syntax.restored(statement) == before


@pytest.mark.parametrize(
    ("condition", "turned"),
    [
        ("1 < k", "k > 1"),
        ("upper('a') >= s OR 2 = k", "s <= upper('a') OR k = 2"),
        ("random() < k", None),
        ("(SELECT 1) = k", None),
        ("1 = 2", None),
    ],
)
def test_constants_are_on_the_right(condition: str, turned: str | None) -> None:
    (statement,) = syntax.parse(f"SELECT k FROM t WHERE {condition}")
    top = next(scopes.scopes(statement))
    assert constant_columns.turn(top) is (turned is not None)
    assert syntax.restored(statement) == f"SELECT k FROM t WHERE {turned or condition}"
