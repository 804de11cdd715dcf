"""Joins of columns with equal names answer on several executors as on one node."""

from collections.abc import Iterator

import pytest

from caraway_core.errors import QueryError
from tests.differential import asking, cluster_runners, key_tables, runners
from tests.differential.asking import Pair, Runner
from tests.differential.datasets import Dataset
from tests.kit.clusters import EAGER, TINY

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
POLICIES = {"tiny": TINY, "eager": EAGER}


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return key_tables.build(tmp_path_factory.mktemp("joins") / "keys")


@pytest.fixture(scope="session")
def reference(keys: Dataset) -> Iterator[Runner]:
    with asking.opened(runners.single_node, keys) as made:
        yield made


@pytest.fixture(scope="module", params=POLICIES)
def on_keys(request: pytest.FixtureRequest, keys: Dataset, reference: Runner) -> Iterator[Pair]:
    opening = cluster_runners.in_process(2, POLICIES[request.param])
    with asking.opened(opening, keys) as runner:
        yield Pair(reference, runner)


@pytest.mark.parametrize("name", REPORTED)
def test_filters_stay_on_the_column_that_they_name(name: str, on_keys: Pair) -> None:
    assert not isinstance(on_keys.expected(REPORTED[name]), QueryError)
    on_keys.check(REPORTED[name])
