"""The 22 queries of TPC-H: a runner agrees with one node, and one node with DuckDB."""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from tests.differential import asking, runners, tpc
from tests.differential.asking import Pair, Runner
from tests.differential.datasets import Dataset
from tests.differential.runners import Opening
from tests.differential.tpc_answers import is_same, table

pytestmark = pytest.mark.answers

TEXTS = tpc.tpch_texts()
QUICK = ("q01", "q03", "q13", "q18", "q21")
QUERIES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in TEXTS
]  # fmt: skip


@pytest.fixture(scope="module")
def tpch(request: pytest.FixtureRequest) -> Dataset:
    return tpc.tpch(request.config.cache.mkdir("caraway-tpc"), "0.1")


@pytest.fixture(scope="module")
def reference(tpch: Dataset) -> Iterator[Runner]:
    with asking.opened(runners.single_node, tpch) as runner:
        yield runner


@pytest.fixture(scope="module")
def pair(opening: Opening, tpch: Dataset, reference: Runner) -> Iterator[Pair]:
    with asking.opened(opening, tpch) as runner:
        yield Pair(reference, runner)


@pytest.fixture(scope="module")
def duck(tpch: Dataset) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 2}) as connection:
        for name in tpch.tables:
            files = tpch.folder / name / "*.parquet"
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{files}')")
        yield connection


def test_there_are_22() -> None:
    assert len(TEXTS) == 22


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_equal(name: str, pair: Pair) -> None:
    sql = TEXTS[name]
    answer, whole = table(pair.expected(sql)), table(pair.expected(tpc.without_limit(sql)))
    assert answer.num_rows > 0
    pair.check(sql, tpc.order(sql, answer, whole))


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_those_of_duckdb(
    name: str, reference: Runner, duck: duckdb.DuckDBPyConnection
) -> None:
    ours = table(reference.outcome(TEXTS[name]))
    theirs = duck.sql(TEXTS[name]).to_arrow_table()
    assert ours.num_rows == theirs.num_rows
    for number, column in enumerate(ours.columns):
        scale = column.type.scale if pa.types.is_decimal(column.type) else None
        for one, other in zip(column.to_pylist(), theirs.column(number).to_pylist(), strict=True):
            assert is_same(one, other, scale), ours.schema.names[number]
