"""The spec of limits: their bounds, and names as in the management API."""

from typing import Any

import pytest
from pydantic import ValidationError

from caraway_kube.resources.limits import UNLIMITED, CarawayLimitsSpec

_BOUNDS = ("api_rps", "request_timeout_secs", "sql_query_timeout_secs", "sql_concurrent_queries")
_COUNTS = ("apps", "replicas", "pods", "users")


def parse(**fields: Any) -> CarawayLimitsSpec:
    return CarawayLimitsSpec.model_validate(fields)


def test_without_a_value_all_is_unlimited() -> None:
    found = parse()
    assert {getattr(found, name) for name in (*_COUNTS, "api_rps")} == {UNLIMITED}
    assert found.request_timeout_secs is None
    assert found.resources is None


@pytest.mark.parametrize("name", _COUNTS)
@pytest.mark.parametrize("value", [-1, 0, 1, 2_000_000_000])
def test_counts(name: str, value: int) -> None:
    assert getattr(parse(**{name: value}), name) == value


@pytest.mark.parametrize("name", _BOUNDS)
@pytest.mark.parametrize("value", [-1, 1, 2_000_000_000])
def test_bounds(name: str, value: int) -> None:
    assert getattr(parse(**{name: value}), name) == value


@pytest.mark.parametrize("name", _BOUNDS)
def test_a_bound_of_zero_would_stop_all_work(name: str) -> None:
    with pytest.raises(ValidationError, match="must be 1 or more, or -1 for no limit"):
        parse(**{name: 0})


@pytest.mark.parametrize(
    "fields",
    [
        {"apps": -2}, {"apps": 2_000_000_001}, {"apps": "many"}, {"apps": 1.5}, {"api_rps": -2},
        {"organization": ""}, {"organization": "a b"}, {"organization": "a" * 256},
        {"organization": "a\n"}, {"resources": {"max_cpu": 0}},
        {"resources": {"max_memory_gi": -1}},
    ],
)  # fmt: skip
def test_other_values_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parse(**fields)


def test_parts() -> None:
    found = parse(organization="acme-1", resources={"max_cpu": 4, "max_memory_gi": 8})
    assert found.organization == "acme-1"
    assert found.resources is not None
    assert (found.resources.max_cpu, found.resources.max_memory_gi) == (4, 8)
