"""Optimized plans over rows in memory are kept by the tables that they read."""

from typing import Any, cast

import pyarrow as pa
import pytest

from caraway_engine.execution.contexts import PlanRun
from caraway_engine.sharing import kept_version_plans
from caraway_engine.sharing.kept_version_plans import KeptVersionPlan, KeptVersionPlans
from caraway_engine.statements.plan_facts import PlanFacts
from tests.kit.clocks import Clock


def plan() -> KeptVersionPlan:
    return KeptVersionPlan(object(), PlanRun(), object(), cast(PlanFacts, None), pa.schema([]))


def test_a_plan_is_found_by_its_fragment_and_its_tables() -> None:
    kept, made = KeptVersionPlans(), plan()
    tables: dict[str, Any] = {"a": object(), "b": object()}
    kept.keep(b"fragment", tables, made)

    assert kept.find(b"fragment", dict(reversed(tables.items()))) is made
    assert kept.find(b"other", tables) is None
    assert kept.find(b"fragment", {**tables, "b": cast(Any, object())}) is None
    assert kept.find(b"fragment", {"a": tables["b"], "b": tables["a"]}) is None
    assert kept.find(b"fragment", {"a": tables["a"]}) is None


def test_a_table_that_is_kept_cannot_be_taken_for_another() -> None:
    kept = KeptVersionPlans()
    for _ in range(100):
        # The identity of an object that nobody has is given to the next one.
        assert kept.find(b"fragment", {"a": cast(Any, object())}) is None
        kept.keep(b"fragment", {"a": cast(Any, object())}, plan())


def test_the_plan_that_was_not_used_for_longest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_version_plans, "_MOST_PLANS", 2)
    kept = KeptVersionPlans()
    first, second = plan(), plan()
    kept.keep(b"1", {}, first)
    kept.keep(b"2", {}, second)
    assert kept.find(b"1", {}) is first
    kept.keep(b"3", {}, plan())

    assert kept.find(b"1", {}) is first
    assert kept.find(b"2", {}) is None


def test_a_large_fragment_is_not_kept() -> None:
    kept = KeptVersionPlans()
    kept.keep(bytes(256 * 1024 + 1), {}, plan())
    assert kept.find(bytes(256 * 1024 + 1), {}) is None


def test_a_plan_that_is_not_used_for_half_a_minute_is_forgotten() -> None:
    clock = Clock()
    kept = KeptVersionPlans(clock)
    used, unused = plan(), plan()
    kept.keep(b"unused", {}, unused)
    kept.keep(b"used", {}, used)
    clock.now += 29
    assert kept.find(b"used", {}) is used
    kept.forget_unused()
    assert kept.find(b"unused", {}) is unused
    clock.now += 31
    assert kept.find(b"used", {}) is used
    kept.forget_unused()

    assert kept.find(b"unused", {}) is None
    assert kept.find(b"used", {}) is used
