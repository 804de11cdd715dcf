import math

import pytest
from substrait.algebra_pb2 import Rel

from caraway_core.ids import TableName
from caraway_engine.stages import Cluster, TableFacts
from caraway_engine.stages.relations import children, kind, walk, width
from caraway_engine.stages.row_estimates import RowEstimates
from tests.engine.stages.planning import context, substrait

FACTS, DIMS = TableName("facts"), TableName("dims")
BOTH = frozenset({FACTS, DIMS})


def join(sql: str) -> Rel:
    plan, _ = substrait(context()[0], sql)
    return next(each for each in walk(plan.relations[0].root.input) if kind(each) == "join")


JOIN = join("SELECT f.id, d.label FROM dims d LEFT JOIN facts f ON f.dim = d.dim")


def estimates(left: int | None, right: int | None) -> RowEstimates:
    rows = {DIMS: left, FACTS: right}
    facts = {name: TableFacts(1, 2, True, rows=count) for name, count in rows.items()}
    return RowEstimates(Cluster(2, tables=facts), {FACTS}, {BOTH: 50.0})


def test_a_join_has_the_estimated_rows_of_its_tables() -> None:
    assert estimates(1, 1).joined_bytes(JOIN) == 50 * width(JOIN) * 16


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT f.id FROM more m JOIN facts f ON f.id = m.id",
        "SELECT a.id FROM facts a JOIN facts b ON a.id = b.other",
    ],
)
def test_a_join_of_which_nothing_is_known_has_any_size(sql: str) -> None:
    assert estimates(1, 1).joined_bytes(join(sql)) == math.inf


@pytest.mark.parametrize(
    ("left", "right", "may"),
    [(10, 20, True), (10, 19, False), (10, 0, False), (None, 20, False), (10, None, False)],
)
def test_a_side_with_several_rows_for_each_row_may_be_grouped_first(
    left: int | None, right: int | None, may: bool
) -> None:
    assert estimates(left, right).may_group_first(*children(JOIN)) == may


def test_a_side_that_one_task_reads_is_not_grouped_first() -> None:
    left, right = children(JOIN)

    assert not estimates(10, 20).may_group_first(right, left)
