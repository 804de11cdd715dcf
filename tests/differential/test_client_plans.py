"""Statements that arrive as plans of DataFusion's producer have the answers of their SQL.

A statement may be refused, but never be answered otherwise. `OTHERWISE` names the statements that
the producer's own planner reads otherwise: the plan has another meaning before it is sent.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_engine.client_plans import plans
from caraway_engine.rows.plain import plain_schema
from tests.differential import asking, runners, tpc
from tests.differential.asking import Pair, Runner
from tests.differential.comparing import Order, Outcome, difference
from tests.differential.corpus_cases import ANSWERED, order
from tests.differential.datasets import Dataset
from tests.differential.generated import Query, queries
from tests.differential.generated_order import order as generated_order
from tests.kit import client_plans, generating

pytestmark = pytest.mark.answers

RANDOM_EXAMPLES = 400
MOST_ROWS = 50_000
OTHERWISE = {
    "casts of moments": "TIMESTAMPTZ of the plain engine has no zone",
    "filter on a zoned timestamp": "TIMESTAMP '...Z' of the plain engine loses the zone",
    "HAVING on a sum of decimals beside a distinct count": "sums of sums get more digits",
    "q16": "sums of sums get more digits",
    "q94": "sums of sums get more digits",
    "q95": "sums of sums get more digits",
}


class Planned:
    """Answers statements by way of a plan."""

    def __init__(self, runner: Runner, dataset: Dataset) -> None:
        self._runner = runner
        self._context = SessionContext()
        for name in dataset.tables:
            self._context.register_parquet(name, f"{dataset.folder / name}/")
        for name, sql in dataset.views.items():
            self._context.sql(f"CREATE VIEW {name} AS {sql}").collect()

    def outcome(self, sql: str, *, optimized: bool) -> Outcome | str:
        """Return the answer, or why there is none."""
        try:
            encoded = client_plans.produced_in(self._context, sql, optimized=optimized)
        except Exception:  # The producer cannot express it, or the plain engine not plan it.
            return "no plan"
        try:
            made = plans.written(encoded, self._schema)
        except InvalidQueryError:
            return "refused"
        return self._runner.outcome(made)

    def _schema(self, names: Sequence[str]) -> pa.Schema:
        try:
            return self._context.table(names[-1]).schema()
        except KeyError as exc:
            raise InvalidQueryError("no such table") from exc


def told(name: str, sql: str, planned: Planned, expected: Outcome, kept: Order) -> Counter[str]:
    """Compare the answers of both plans with that of the SQL, and count what came of them."""
    counted: Counter[str] = Counter()
    assert not isinstance(expected, QueryError)
    for optimized in (False, True):
        outcome = planned.outcome(sql, optimized=optimized)
        if isinstance(outcome, str):
            counted[outcome] += 1
            continue
        assert not isinstance(outcome, QueryError), (name, outcome.message)
        if name not in OTHERWISE:
            found = difference(_plain(expected), _plain(outcome), kept)
            assert found is None, f"{name}, optimized: {optimized}: {found}"
        counted["equal"] += 1
    return counted


def _plain(answer: pa.Table) -> pa.Table:
    return answer.cast(plain_schema(answer.schema))


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.full)])
def test_the_corpus(every: int, small: Dataset, small_reference: Runner) -> None:
    planned, counted = Planned(small_reference, small), Counter[str]()
    pair = Pair(small_reference, small_reference)
    for case in ANSWERED[::every]:
        expected = small_reference.remembered(case.sql)
        counted += told(case.name, case.sql, planned, expected, order(case, pair))
    assert counted["equal"] > 0.75 * counted.total(), counted


@pytest.fixture(scope="module")
def tpch(request: pytest.FixtureRequest) -> Dataset:
    return tpc.tpch(request.config.cache.mkdir("caraway-tpc"), "0.01")


@pytest.fixture(scope="module")
def tpch_reference(tpch: Dataset) -> Iterator[Runner]:
    with asking.opened(runners.single_node, tpch) as runner:
        yield runner


def test_tpch(tpch: Dataset, tpch_reference: Runner) -> None:
    counted = _of_benchmark(tpc.tpch_texts(), tpch, tpch_reference)
    assert counted == {"equal": 38, "no plan": 6}


@pytest.mark.full
def test_tpcds(request: pytest.FixtureRequest) -> None:
    dataset = tpc.tpcds(request.config.cache.mkdir("caraway-tpc"), "0.01")
    with asking.opened(runners.single_node, dataset) as reference:
        counted = _of_benchmark(tpc.tpcds_texts(), dataset, reference)
    assert counted["equal"] >= 140, counted


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_random_statements(small: Dataset, small_reference: Runner) -> None:
    planned, counted = Planned(small_reference, small), Counter[str]()
    pair = Pair(small_reference, small_reference)

    def agree(query: Query) -> None:
        expected = small_reference.outcome(query.sql)
        if isinstance(expected, QueryError) or expected.num_rows > MOST_ROWS:
            return
        for optimized in (False, True):
            outcome = planned.outcome(query.sql, optimized=optimized)
            if isinstance(outcome, InvalidQueryError):
                outcome = "no safe form"
            counted[outcome if isinstance(outcome, str) else "answered"] += 1
            if isinstance(outcome, str):
                continue
            assert not isinstance(outcome, QueryError), (query.sql, outcome.message)
            found = difference(_plain(expected), _plain(outcome), generated_order(query, pair))
            assert found is None, f"{query.sql}, optimized: {optimized}: {found}"

    generating.check_same(queries(), RANDOM_EXAMPLES, agree)
    assert counted["answered"] > 0.4 * counted.total(), counted
    assert counted["no safe form"] < 0.02 * counted.total(), counted


def _of_benchmark(texts: dict[str, str], dataset: Dataset, reference: Runner) -> Counter[str]:
    planned, counted = Planned(reference, dataset), Counter[str]()
    for name, text in texts.items():
        sql = text.strip().removesuffix(";")
        expected, whole = (reference.remembered(each) for each in (sql, tpc.without_limit(sql)))
        assert isinstance(expected, pa.Table) and isinstance(whole, pa.Table)
        counted += told(name, sql, planned, expected, tpc.order(sql, expected, whole))
    return counted
