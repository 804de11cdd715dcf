from typing import Any

import pytest

from caraway_core.errors import PlanLostError
from caraway_engine.routing import PlanId
from caraway_engine.routing.held import HeldPlanners, StagedStatement

A, B, C = map(PlanId, "abc")


def under_way() -> StagedStatement:
    planner: Any = object()
    return StagedStatement(planner, planner, planner, {})


def test_a_planner_is_held_until_it_is_forgotten() -> None:
    held, kept = HeldPlanners(), under_way()
    held.register_plan(A)
    held.keep(A, kept)
    assert held.planner_of(A) is kept
    held.forget(A)
    held.forget(A)
    assert not len(held)
    with pytest.raises(PlanLostError):
        held.planner_of(A)


def test_what_is_forgotten_while_it_is_planned_is_not_kept() -> None:
    held = HeldPlanners()
    held.register_plan(A)
    with pytest.raises(PlanLostError):
        held.planner_of(A)
    held.forget(A)
    held.keep(A, under_way())
    assert not len(held)


def test_the_oldest_gives_way_where_there_are_too_many() -> None:
    held = HeldPlanners(most=2)
    for plan in (A, B, C):
        held.register_plan(plan)
        held.keep(plan, under_way())
    assert len(held) == 2
    with pytest.raises(PlanLostError):
        held.planner_of(A)
    assert held.planner_of(B) and held.planner_of(C)
