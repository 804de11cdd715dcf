from typing import Any

import pytest

from caraway_management.domain import limiting, plans
from caraway_management.domain.plans import PLANS, UNLIMITED
from caraway_management.domain.refusals import RefusedError

PRO = PLANS["pro"]


def test_as_many_projects_as_the_plan_allows() -> None:
    limits = plans.read_limits({"apps": 3}, PRO)
    limiting.check_apps(limits, 2)
    with pytest.raises(RefusedError, match="apps: the plan allows 3") as refused:
        limiting.check_apps(limits, 3)
    assert (refused.value.status, refused.value.code) == (403, "plan_limit")
    limiting.check_apps(plans.read_limits({"apps": UNLIMITED}, PRO), 1_000_000)


def test_a_plan_without_manifests_deploys_nothing() -> None:
    limiting.check_manifests(PRO)
    with pytest.raises(RefusedError, match="pods: the plan allows 0"):
        limiting.check_manifests(plans.read_limits({"pods": 0}, PRO))


def test_what_exceeds_a_plan_is_lowered_and_the_rest_stays() -> None:
    limits = plans.read_limits(
        {"replicas": 2, "resources": {"max_cpu": 4, "max_memory_gi": 8}}, PRO
    )
    config: dict[str, Any] = {
        "image_tag": "1.2.3",
        "replicas": 5,
        "storage_size_gb": 10,
        "resources": {
            "limits": {"cpu": "16", "memory": "4Gi", "ephemeral-storage": "99Gi"},
            "requests": {"cpu": "500m", "memory": "64Gi"},
        },
        "executor": {"replicas": 9, "resources": {"limits": {"cpu": "4001m"}}},
    }
    before = repr(config)
    assert limiting.within(config, limits) == {
        "image_tag": "1.2.3",
        "replicas": 2,
        "storage_size_gb": 10,
        "resources": {
            "limits": {"cpu": "4", "memory": "4Gi", "ephemeral-storage": "99Gi"},
            "requests": {"cpu": "500m", "memory": "8Gi"},
        },
        "executor": {"replicas": 2, "resources": {"limits": {"cpu": "4"}}},
    }
    assert repr(config) == before


def test_without_private_compute_there_are_no_own_sizes() -> None:
    config = {"resources": {"limits": {"cpu": "2"}}, "executor": {"resources": {}, "replicas": 1}}
    assert limiting.within(config, PLANS["developer"]) == {"executor": {"replicas": 1}}
    assert limiting.within({}, PLANS["community"]) == {}
