"""Random statements have the same answer on a runner as on one node."""

import pytest
from hypothesis import note

from caraway_core.errors import QueryError
from tests.differential.asking import Pair
from tests.differential.cluster_runners import WHOLE
from tests.differential.generated import Query, queries
from tests.differential.generated_order import MOST_ROWS, order
from tests.kit import generating

pytestmark = pytest.mark.answers

QUERIES = queries()
QUICK_EXAMPLES = 80
SHARE_EXAMPLES = 20
"""Over the runners of which `make test` runs a share of the corpus."""
LONG_EXAMPLES = 3000
LEAST_ACCEPTED = 0.95
LEAST_WITH_ROWS = 0.5
MOST_FAULTS = 0.005
# With one partition, as on an executor with one core, DataFusion 55 rejects a few of its own plans
# over constant columns; see decision 0006.
PLANNER_FAULT = "SanityCheckPlan"


class Tally:
    """Counts the outcomes of the statements of one run."""

    def __init__(self) -> None:
        self.asked = self.accepted = self.with_rows = self.faults = 0

    def check(self) -> None:
        assert self.accepted >= LEAST_ACCEPTED * self.asked, vars(self)
        assert self.with_rows >= LEAST_WITH_ROWS * self.asked, vars(self)
        assert self.faults <= MOST_FAULTS * self.asked, vars(self)


def agree(query: Query, pair: Pair, tally: Tally) -> None:
    expected = pair.expected(query.sql)
    note(query.sql)
    if isinstance(expected, QueryError):
        tally.asked += 1
        return  # a limit of the engine; no such statement fails because of its rows
    if expected.num_rows > MOST_ROWS:
        return
    tally.asked += 1
    tally.accepted += 1
    tally.with_rows += expected.num_rows > 0
    got = pair.runner.outcome(query.sql)
    if isinstance(got, QueryError) and got.message.startswith(PLANNER_FAULT):
        tally.faults += 1
        return
    pair.judge(query.sql, expected, got, order(query, pair))


@pytest.mark.timeout(400)
def test_the_same_statements_every_time(on_small: Pair, request: pytest.FixtureRequest) -> None:
    tally = Tally()
    is_whole = request.node.callspec.params["opening"] == WHOLE
    examples = QUICK_EXAMPLES if is_whole else SHARE_EXAMPLES
    generating.check_same(QUERIES, examples, lambda query: agree(query, on_small, tally))
    tally.check()


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_other_statements_every_time(on_small: Pair, request: pytest.FixtureRequest) -> None:
    tally = Tally()
    generating.check_others(
        queries(),
        LONG_EXAMPLES,
        lambda query: agree(query, on_small, tally),
        request,
        tally.check,
    )
