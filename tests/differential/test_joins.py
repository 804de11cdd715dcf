"""Joins of tables with common names have the same answer on executors, one node and DuckDB."""

import re
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from hypothesis import note

from caraway_core.errors import QueryError
from caraway_engine.stages import Policy
from tests.differential import asking, cluster_runners, key_tables, runners
from tests.differential.asking import Pair, Runner
from tests.differential.comparing import unmatched
from tests.differential.datasets import Dataset
from tests.differential.generated import Query
from tests.differential.join_trees import queries
from tests.differential.rows import of_table as rows_of
from tests.kit import generating
from tests.kit.clusters import EAGER, TINY

pytestmark = pytest.mark.answers

QUERIES = queries()
QUICK_EXAMPLES = 30
LONG_EXAMPLES = 2500
REAL_EXAMPLES = 500
MOST_ROWS = 50_000
LEAST_ACCEPTED = 0.97
LEAST_WITH_ROWS = 0.35
MOST_FAULTS = 0.01
"""Statements that DataFusion 55 answers incorrectly on one node, and DuckDB correctly."""

# Each gave invented rows, no rows, `Unsupported data type Int64 for function upper` or a panic.
REPORTED = {
    "a self join": "SELECT count(*), min(x1.a), max(x1.a) FROM two x0 RIGHT JOIN two x1 "
    "ON x0.b = x1.b WHERE upper(x0.b) > 'KEY-5'",
    "no match at all": "SELECT count(*) FROM customer x0 RIGHT JOIN n1 x1 ON x0.c_name = x1.s "
    "WHERE lower(x0.c_name) > ''",
    "some matches": "SELECT count(*), min(x1.i) FROM customer x0 RIGHT JOIN visits x1 "
    "ON x0.c_name = x1.s WHERE lower(x0.c_name) > ''",
    "another type": "SELECT x1.i FROM customer x0 RIGHT JOIN visits x1 "
    "ON x0.c_name = x1.s WHERE upper(x0.c_name) > ''",
    "groups": "SELECT x1.i % 5, count(*) FROM customer x0 RIGHT JOIN visits x1 "
    "ON x0.c_name = x1.s WHERE upper(x0.c_name) > '' GROUP BY 1",
}
_HALF_JOINS = re.compile(r"LEFT (SEMI|ANTI) JOIN")
MIXED = Policy(small_table_bytes=1500, spread_bytes=0, broadcast_bytes=512, gather_bytes=512)
"""Reads the smaller tables whole, next to shares of the larger ones."""
OPENINGS = {
    "tiny": cluster_runners.in_process(2, TINY),
    "eager": cluster_runners.in_process(2, EAGER),
    "mixed": cluster_runners.in_process(2, MIXED),
    "shuffling": runners.shuffling,
    "shuffling-stages": cluster_runners.shuffling(2, MIXED),
    "early": runners.early,
    "real": cluster_runners.real(2),
}
ORDINARY = ("eager", "mixed", "shuffling", "shuffling-stages")
PARAMS = [
    pytest.param(name, marks=() if name in ORDINARY else pytest.mark.full) for name in OPENINGS
]


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return key_tables.build(tmp_path_factory.mktemp("joins") / "keys")


@pytest.fixture(scope="session")
def reference(keys: Dataset) -> Iterator[Runner]:
    with asking.opened(runners.single_node, keys) as made:
        yield made


@pytest.fixture(scope="module", params=PARAMS)
def on_keys(request: pytest.FixtureRequest, keys: Dataset, reference: Runner) -> Iterator[Pair]:
    with asking.opened(OPENINGS[request.param], keys) as runner:
        yield Pair(reference, runner)


@pytest.fixture(scope="session")
def duck(keys: Dataset) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        for table in keys.tables:
            connection.sql(f"CREATE VIEW {table} AS FROM '{keys.folder / table}/*.parquet'")
        yield connection


class Tally:
    """Counts the outcomes of the statements of one run."""

    def __init__(self) -> None:
        self.asked = self.accepted = self.with_rows = self.faults = 0

    def check(self) -> None:
        assert self.accepted >= LEAST_ACCEPTED * self.asked, vars(self)
        assert self.with_rows >= LEAST_WITH_ROWS * self.asked, vars(self)
        assert self.faults <= MOST_FAULTS * self.asked, vars(self)


def agree(query: Query, pair: Pair, duck: duckdb.DuckDBPyConnection, tally: Tally) -> None:
    """Compare with one node, which counts as correct unless DuckDB disagrees."""
    note(query.sql)
    tally.asked += 1
    expected = pair.expected(query.sql)
    if isinstance(expected, QueryError):
        return
    tally.accepted += 1
    if expected.num_rows > MOST_ROWS:
        return
    tally.with_rows += expected.num_rows > 0
    got = pair.runner.outcome(query.sql)
    if (is_right := _is_answer_of(duck, query.sql, expected)) is False:
        tally.faults += 1
        if not isinstance(got, QueryError) and _is_answer_of(duck, query.sql, got):
            return
    pair.judge(query.sql, expected, got)
    assert is_right is not None, f"DuckDB refuses it\n\n{query.sql}"


def _is_answer_of(duck: duckdb.DuckDBPyConnection, sql: str, answer: pa.Table) -> bool | None:
    """Return whether DuckDB gives the same rows; None if it does not support the statement."""
    try:
        rows = duck.execute(_HALF_JOINS.sub(r"\1 JOIN", sql)).to_arrow_table()
    except duckdb.Error:
        return None
    return unmatched(rows_of(rows), rows_of(answer)) == [] and rows.num_rows == answer.num_rows


@pytest.mark.parametrize("name", REPORTED)
def test_filters_stay_on_the_column_that_they_name(name: str, on_keys: Pair) -> None:
    assert not isinstance(on_keys.expected(REPORTED[name]), QueryError)
    on_keys.check(REPORTED[name])


@pytest.mark.timeout(400)
def test_the_same_trees_of_joins_every_time(on_keys: Pair, duck: duckdb.DuckDBPyConnection) -> None:
    tally = Tally()
    generating.check_same(QUERIES, QUICK_EXAMPLES, lambda query: agree(query, on_keys, duck, tally))
    tally.check()


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_other_trees_of_joins_every_time(
    on_keys: Pair, duck: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    tally = Tally()
    is_real = request.node.callspec.id == "real"
    generating.check_others(
        queries(),
        REAL_EXAMPLES if is_real else LONG_EXAMPLES,
        lambda query: agree(query, on_keys, duck, tally),
        request,
        tally.check,
    )
