"""The 99 queries of TPC-DS have the same answers on a runner as on one node."""

from collections.abc import Iterator

import pytest

from caraway_core.errors import QueryError
from tests.differential import asking, runners, tpc
from tests.differential.asking import Pair, Runner
from tests.differential.datasets import Dataset
from tests.differential.runners import Opening
from tests.differential.tpc_answers import table

pytestmark = pytest.mark.answers

TEXTS = tpc.tpcds_texts()
QUICK = ("q03", "q27", "q49", "q67", "q95")
QUERIES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in TEXTS
]  # fmt: skip
REFUSED: frozenset[str] = frozenset()
"""Queries that DataFusion itself cannot plan or run."""
WITHOUT_ROWS = {8, 10, 23, 24, 31, 37, 41, 44, 54, 58, 64, 82, 83, 84, 85, 91}
"""Queries without an answer over so little data."""


@pytest.fixture(scope="module")
def tpcds(request: pytest.FixtureRequest) -> Dataset:
    return tpc.tpcds(request.config.cache.mkdir("caraway-tpc"), "0.01")


@pytest.fixture(scope="module")
def reference(tpcds: Dataset) -> Iterator[Runner]:
    with asking.opened(runners.single_node, tpcds) as runner:
        yield runner


@pytest.fixture(scope="module")
def pair(opening: Opening, tpcds: Dataset, reference: Runner) -> Iterator[Pair]:
    with asking.opened(opening, tpcds) as runner:
        yield Pair(reference, runner)


def test_there_are_99() -> None:
    assert len(TEXTS) == 99


@pytest.mark.full
def test_one_node_answers_all_but_the_known(reference: Runner) -> None:
    outcomes = {name: reference.outcome(sql) for name, sql in TEXTS.items()}
    refused = {name for name, each in outcomes.items() if isinstance(each, QueryError)}
    assert refused == REFUSED
    empty = {name for name in outcomes if name not in refused and not table(outcomes[name])}
    assert empty == {f"q{number:02}" for number in WITHOUT_ROWS}


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_equal(name: str, pair: Pair) -> None:
    sql = TEXTS[name]
    answer, whole = table(pair.expected(sql)), table(pair.expected(tpc.without_limit(sql)))
    pair.check(sql, tpc.order(sql, answer, whole))
