"""The cheapest shape of joins."""

from caraway_engine.join_orders import ColumnFacts, choosing
from caraway_engine.join_orders.choosing import Edge, ShapeProblem
from caraway_engine.join_orders.estimates import Estimate


def plan(rows: float, **distinct: float) -> Estimate:
    return Estimate(rows, {name: ColumnFacts(count) for name, count in distinct.items()})


def test_small_plans_are_joined_first() -> None:
    problem = ShapeProblem(
        [plan(1e6, a=1e6), plan(1e6, a=1e6, b=1e3), plan(10, b=10)],
        [], [], [], [],
        [Edge(0, 1, ("a", "a"), 0), Edge(1, 2, ("b", "b"), 1)],
        [],
    )  # fmt: skip

    found = choosing.best(problem)

    assert found is not None
    assert found.shape == ((2, 1), 0)
    before = choosing.cost_of(problem, ((0, 1), 2))
    assert before is not None
    assert found.cost < before.cost


def test_two_columns_of_a_key_are_no_more_values_than_rows() -> None:
    problem = ShapeProblem(
        [plan(6e6, a=2e5, b=1e4), plan(8e5, a=2e5, b=1e4)],
        [], [], [], [],
        [Edge(0, 1, ("a", "a"), 0), Edge(0, 1, ("b", "b"), 1)],
        [],
    )  # fmt: skip

    found = choosing.best(problem)

    assert found is not None
    assert 8e5 <= found.rows <= 6e6


def test_a_product_is_no_shape() -> None:
    assert choosing.best(ShapeProblem([plan(5), plan(5)], [], [], [], [], [], [])) is None


def test_a_join_that_filters_is_above_what_it_names() -> None:
    problem = ShapeProblem(
        [plan(1e6, a=1e6), plan(1e6, a=1e6, c=1e6)],
        [plan(10, c=10)], [0b10], [False], [[Edge(1, 0, ("c", "c"), 0)]],
        [Edge(0, 1, ("a", "a"), 0)],
        [],
    )  # fmt: skip

    found = choosing.best(problem)

    assert found is not None
    assert found.shape == ((1, 2), 0)
