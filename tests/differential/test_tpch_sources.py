"""The 22 queries of TPC-H over databases, and over tables that are each in another source."""

from collections.abc import Iterator

import pytest

from tests.differential import asking, mixed_runner, runners, tpc
from tests.differential.asking import Pair, Runner
from tests.differential.datasets import Dataset
from tests.differential.mixed_runner import OF_TPCH, WHOLE
from tests.differential.runners import Opening
from tests.differential.tpc_answers import table

pytestmark = pytest.mark.answers

TEXTS = tpc.tpch_texts()
OPENINGS: dict[str, Opening] = {
    "mixed": mixed_runner.single(OF_TPCH),
    "two-over-mixed": mixed_runner.distributed(OF_TPCH, 2),
    **{name: mixed_runner.single(mixed_runner.all_in(name)) for name in WHOLE},
    **{
        f"two-over-{name}": mixed_runner.distributed(mixed_runner.all_in(name), 2) for name in WHOLE
    },
}
ORDINARY = frozenset({"mixed", "two-over-mixed"})
QUICK = frozenset({"q05", "q08", "q13", "q21"})
"""Queries of `make test`: those of the most tables, and of outer joins and subqueries."""
PARAMS = [
    pytest.param(name, marks=() if name in ORDINARY else pytest.mark.full) for name in OPENINGS
]
QUERIES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.full) for name in TEXTS
]  # fmt: skip


@pytest.fixture(scope="module")
def tpch(request: pytest.FixtureRequest) -> Dataset:
    return tpc.tpch(request.config.cache.mkdir("caraway-tpc"), "0.01")


@pytest.fixture(scope="module")
def reference(tpch: Dataset) -> Iterator[Runner]:
    with asking.opened(runners.single_node, tpch) as runner:
        yield runner


@pytest.fixture(scope="module", params=PARAMS)
def pair(request: pytest.FixtureRequest, tpch: Dataset, reference: Runner) -> Iterator[Pair]:
    with asking.opened(OPENINGS[request.param], tpch) as runner:
        yield Pair(reference, runner)


def test_each_table_has_a_source_of_its_own(tpch: Dataset) -> None:
    assert len(set(OF_TPCH.values())) == len(OF_TPCH) == len(tpch.tables) - 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_those_over_parquet(name: str, pair: Pair) -> None:
    sql = TEXTS[name]
    answer, whole = table(pair.expected(sql)), table(pair.expected(tpc.without_limit(sql)))
    pair.check(sql, tpc.order(sql, answer, whole))
