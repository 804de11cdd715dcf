"""The 22 queries of TPC-H: a runner agrees with one node, and one node with DuckDB."""

from collections.abc import Iterator
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from tests.differential import asking, runners, tpc
from tests.differential.asking import Pair, Runner
from tests.differential.comparing import Outcome
from tests.differential.datasets import Dataset
from tests.differential.runners import Opening

TEXTS = tpc.tpch_texts()
QUICK = ("q01", "q03", "q13", "q18", "q21")
QUERIES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in TEXTS
]  # fmt: skip
RELATIVE = 1e-9


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


def table(outcome: Outcome) -> pa.Table:
    assert not isinstance(outcome, QueryError), outcome
    return outcome


def is_same(ours: object, theirs: object, scale: int | None) -> bool:
    """Sums of decimals are exact in both; an average of decimals is a double in DuckDB."""
    if isinstance(ours, Decimal) and isinstance(theirs, float):
        return abs(float(ours) - theirs) <= 10.0 ** -(scale or 0) + RELATIVE * abs(theirs)
    if isinstance(ours, float) and isinstance(theirs, float | Decimal):
        return ours == pytest.approx(float(theirs), rel=RELATIVE)
    return ours == theirs
