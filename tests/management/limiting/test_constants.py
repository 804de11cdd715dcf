"""The constants of the platform bite, whatever the plan; those of statements do in the runtime."""

from typing import Any

import pytest

from caraway_ai.chat import checking
from caraway_management.domain import configs, plans
from caraway_management.domain.configs import Allowance
from caraway_management.domain.plans import PLANS, UNLIMITED
from caraway_management.domain.refusals import RefusedError
from caraway_management.passthrough import active

LIMITS = plans.read_limits({"replicas": UNLIMITED}, PLANS["enterprise"])
ALLOWANCE = Allowance(LIMITS, has_image_tags=True)


def _sizes(**limits: str) -> dict[str, Any]:
    return {"resources": {"limits": limits}}


@pytest.mark.parametrize(
    "changes",
    [
        _sizes(cpu="0.49"),
        _sizes(cpu="499m"),
        _sizes(cpu="16.1"),
        _sizes(memory="999M"),
        _sizes(memory="129Gi"),
        {"executor": _sizes(cpu="17")},
        {"executor": _sizes(memory="1k")},
        {"storage_size_gb": 257},
        {"storage_size_gb": 0},
        {"executor": {"storage_size_gb": 257}},
        {"replicas": 10, "executor": {"replicas": 41}},
    ],
)
def test_beyond_a_constant_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(RefusedError) as refused:
        configs.merge({}, changes, ALLOWANCE)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    "changes",
    [
        _sizes(cpu="500m", memory="1G"),
        _sizes(cpu="16", memory="128Gi"),
        {"storage_size_gb": 256},
        {"replicas": 10, "executor": {"replicas": 40}},
    ],
)
def test_up_to_a_constant_is_taken(changes: dict[str, Any]) -> None:
    assert configs.merge({}, changes, ALLOWANCE)


def test_active_queries_are_at_most_one_hundred() -> None:
    for planned, most in ((UNLIMITED, 100), (1_024, 100), (101, 100), (99, 99)):
        limits = plans.read_limits({"sql_concurrent_queries": planned}, PLANS["enterprise"])
        assert active.bound(limits) == most


def test_chats_of_the_runtime_have_as_many_messages() -> None:
    assert checking.MOST_MESSAGES == plans.MOST_MESSAGES
