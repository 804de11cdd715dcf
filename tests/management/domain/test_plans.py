"""Plans: their names, and limits that come from JSON."""

import re
from typing import Any

import pytest

from caraway_management.domain import plans
from caraway_management.domain.plans import PLANS, ResourceLimits
from caraway_management.domain.refusals import RefusedError

PRO = PLANS["pro"]


@pytest.mark.parametrize(
    ("text", "is_name"),
    [("pro", True), ("a-b_2", True), ("0", True), ("a" * 63, True), ("a" * 64, False), ("", False),
     ("-a", False), ("Pro", False), ("a b", False), ("a\n", False), ("ä", False)],
)  # fmt: skip
def test_names(text: str, is_name: bool) -> None:
    assert plans.is_name(text) is is_name


def test_each_plan_is_read_from_its_own_json() -> None:
    for limits in PLANS.values():
        assert plans.read_limits(limits.as_json()) == limits


def test_limits_that_a_request_leaves_out_stay() -> None:
    changed = plans.read_limits({"pods": -1, "resources": None}, PRO)
    assert (changed.pods, changed.resources) == (-1, None)
    assert changed.as_json() == {**PRO.as_json(), "pods": -1, "resources": None}
    assert plans.read_limits({}, PRO) == PRO


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"pods": -2}, "pods", "from 0 to 2147483647, or -1 for unlimited"),
        ({"pods": 2**31}, "pods", "must be an integer"),
        ({"pods": True}, "pods", "must be an integer"),
        ({"pods": 1.0}, "pods", "must be an integer"),
        ({"pods": "1"}, "pods", "must be an integer"),
        ({"pods": None}, "pods", "must be an integer"),
        ({"request_timeout_secs": -1}, "request_timeout_secs", "from 1 to 2147483647"),
        ({"request_timeout_secs": 0}, "request_timeout_secs", "from 1 to 2147483647"),
        ({"cpus": 1}, "cpus", "unknown limit"),
        ({"resources": {}}, "resources", "must be null or have max_cpu and max_memory_gi"),
        ({"resources": [1, 2]}, "resources", "must be null or have"),
        ({"resources": {"max_cpu": 1}}, "resources", "must be null or have"),
        ({"resources": {"max_cpu": 0, "max_memory_gi": 1}}, "resources.max_cpu", "from 1 to 16"),
        ({"resources": {"max_cpu": 1, "max_memory_gi": 129}}, "resources.max_memory_gi", "to 128"),
        ({"resources": {"max_cpu": True, "max_memory_gi": 1}}, "resources.max_cpu", "from 1 to 16"),
    ],
)
def test_wrong_limits_are_refused_by_field(
    changes: dict[str, Any], field: str, message: str
) -> None:
    for base in (None, PRO):
        with pytest.raises(RefusedError, match=re.escape(message)) as caught:
            plans.read_limits({**PRO.as_json(), **changes}, base)
        assert field in str(caught.value)


def test_a_new_plan_has_each_limit_but_that_of_containers() -> None:
    values = PRO.as_json()
    del values["resources"]
    assert plans.read_limits(values).resources is None
    del values["users"]
    with pytest.raises(RefusedError, match="is missing"):
        plans.read_limits(values)


def test_resources_are_read() -> None:
    given = {"resources": {"max_cpu": 16, "max_memory_gi": 128}}
    assert plans.read_limits(given, PRO).resources == ResourceLimits(16, 128)


@pytest.mark.parametrize(
    ("limit", "number", "is_exceeded"),
    [(5, 5, False), (5, 6, True), (0, 0, False), (0, 1, True), (plans.UNLIMITED, 10**9, False)],
)
def test_limits_are_exceeded_by_more(limit: int, number: int, is_exceeded: bool) -> None:
    assert plans.is_exceeded(limit, number) is is_exceeded


def test_a_plan_of_the_installation_shows_as_much_of_a_log_as_others() -> None:
    assert plans.max_tail("community") == 100
    assert plans.max_tail("our-own") == plans.max_tail("pro") == 1_000
