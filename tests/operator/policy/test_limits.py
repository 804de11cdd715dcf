from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_kube.resources import quantities
from caraway_kube.resources.limits import CarawayLimitsSpec
from caraway_operator.manifests import sizing
from caraway_operator.policy import limits
from tests.operator.manifests.clusters import spec

COMPONENTS = ("head", "scheduler", "executor", "state")


def of(**fields: Any) -> CarawayLimitsSpec:
    return CarawayLimitsSpec.model_validate(fields)


def test_without_limits_everything_is_allowed() -> None:
    desired = spec(executor={"replicas": 1000})
    assert limits.clamp(desired, None).spec is desired
    allowed = limits.clamp(desired, of())
    assert (allowed.spec, allowed.clamped, allowed.refused) == (desired, (), ())


def test_lowered_replicas_are_reported() -> None:
    desired = spec(
        scheduler={"replicas": 4}, executor={"replicas": 9, "minReplicas": 2, "maxReplicas": 12}
    )
    allowed = limits.clamp(desired, of(replicas=3))
    executor = allowed.spec.executor
    assert (executor.replicas, executor.min_replicas, executor.max_replicas) == (3, 2, 3)
    assert allowed.spec.scheduler.replicas == 3
    assert [str(each) for each in allowed.clamped] == [
        "spec.scheduler.replicas: 4 was lowered to 3 by the limit 'replicas'",
        "spec.executor.replicas: 9 was lowered to 3 by the limit 'replicas'",
        "spec.executor.maxReplicas: 12 was lowered to 3 by the limit 'replicas'",
    ]
    assert not allowed.refused


def test_requests_and_limits_are_lowered() -> None:
    resources = {
        "requests": {"cpu": "6", "memory": "20Gi"},
        "limits": {"cpu": 8, "memory": "64Gi", "ephemeral-storage": "100Gi"},
    }
    allowed = limits.clamp(
        spec(executor={"resources": resources}), of(resources={"max_cpu": 4, "max_memory_gi": 16})
    )
    assert allowed.spec.executor.resources.model_dump() == {
        "requests": {"cpu": "4", "memory": "16Gi"},
        "limits": {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi"},
    }
    assert [(each.path, each.desired, each.limit) for each in allowed.clamped] == [
        ("spec.executor.resources.requests.cpu", "6", "resources.max_cpu"),
        ("spec.executor.resources.requests.memory", "20Gi", "resources.max_memory_gi"),
        ("spec.executor.resources.limits.cpu", "8", "resources.max_cpu"),
        ("spec.executor.resources.limits.memory", "64Gi", "resources.max_memory_gi"),
    ]


def test_containers_without_a_cpu_limit_get_one() -> None:
    allowed = limits.clamp(spec(), of(resources={"max_cpu": 16}))
    assert allowed.spec.executor.resources.limits["cpu"] == "1"
    assert allowed.clamped == ()


def test_lowered_defaults_are_not_reported() -> None:
    allowed = limits.clamp(spec(), of(resources={"max_memory_gi": 1}))
    assert allowed.spec.executor.resources.limits["memory"] == "1Gi"
    assert allowed.clamped == ()


@pytest.mark.parametrize(("others", "is_refused"), [(0, False), (1, False), (2, True), (3, True)])
def test_clusters_beyond_the_limit_are_refused(others: int, is_refused: bool) -> None:
    refused = limits.clamp(spec(), of(apps=2), others=others).refused
    assert bool(refused) is is_refused
    if refused:
        assert str(refused[0]).startswith("spec.organization: the limit 'apps' allows 2 clusters")


def test_a_limit_of_no_manifests_refuses_the_cluster() -> None:
    [problem] = limits.clamp(spec(), of(pods=0)).refused
    assert problem.path == "spec.manifest"


RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "requests": st.fixed_dictionaries(
            {},
            optional={
                "cpu": st.integers(1, 900).map(lambda number: f"{number}m"),
                "memory": st.integers(800, 1000).map(lambda number: f"{number}Mi"),
            },
        ),
        "limits": st.fixed_dictionaries(
            {},
            optional={"cpu": st.integers(1, 64), "memory": st.integers(1, 64).map("{}Gi".format)},
        ),
    },
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "head": st.fixed_dictionaries({"resources": RESOURCES}),
        "state": st.fixed_dictionaries({"resources": RESOURCES, "storeResources": RESOURCES}),
        "scheduler": st.fixed_dictionaries(
            {"resources": RESOURCES, "replicas": st.integers(0, 100)}
        ),
        "executor": st.fixed_dictionaries(
            {"resources": RESOURCES, "replicas": st.integers(0, 1000)}
        ),
    },
)
LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(-1, 1000),
        "resources": st.none()
        | st.fixed_dictionaries(
            {}, optional={"max_cpu": st.integers(1, 64), "max_memory_gi": st.integers(1, 64)}
        ),
    },
)


@given(SPECS, LIMITS)
def test_the_result_is_within_the_limits(sections: dict[str, Any], fields: dict[str, Any]) -> None:
    desired, bounds = spec(**sections), of(**fields)
    allowed = limits.clamp(desired, bounds).spec
    if bounds.replicas >= 0:
        assert max(allowed.executor.replicas, allowed.scheduler.replicas) <= bounds.replicas
    for component in COMPONENTS:
        resources = sizing.effective(component, getattr(allowed, component).resources)
        for kind in (resources.requests, resources.limits):
            if bounds.resources and bounds.resources.max_cpu and "cpu" in kind:
                assert quantities.number(kind["cpu"]) <= bounds.resources.max_cpu
            if bounds.resources and bounds.resources.max_memory_gi:
                most = quantities.number(f"{bounds.resources.max_memory_gi}Gi")
                assert quantities.number(kind["memory"]) <= most
        for name, asked in resources.requests.items():
            if name in resources.limits:
                assert quantities.number(asked) <= quantities.number(resources.limits[name])


@given(SPECS, LIMITS)
def test_clamping_twice_changes_nothing(sections: dict[str, Any], fields: dict[str, Any]) -> None:
    once = limits.clamp(spec(**sections), of(**fields))
    twice = limits.clamp(once.spec, of(**fields))
    assert (twice.spec, twice.clamped) == (once.spec, ())


@given(SPECS, LIMITS)
def test_no_value_is_raised(sections: dict[str, Any], fields: dict[str, Any]) -> None:
    desired = spec(**sections)
    allowed = limits.clamp(desired, of(**fields)).spec
    assert allowed.executor.replicas <= desired.executor.replicas
    for component in COMPONENTS:
        before = getattr(desired, component).resources
        after = getattr(allowed, component).resources
        for given_, left in ((before.requests, after.requests), (before.limits, after.limits)):
            for name in given_:
                assert quantities.number(left[name]) <= quantities.number(given_[name])
