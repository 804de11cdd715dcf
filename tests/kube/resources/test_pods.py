"""Sections of pods: their keys, their defaults, and merging of user fields."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_kube.resources import parsing
from caraway_kube.resources.cluster import CarawayClusterSpec
from caraway_kube.resources.pods import merged
from caraway_operator.kube import comparing

MANIFEST = {"manifest": {"name": "app"}}
COMPONENTS = ("head", "scheduler", "executor", "state")
KEYS = st.sampled_from("abc")
VALUES = st.recursive(
    st.none() | st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3)


def spec(sections: dict[str, Any]) -> CarawayClusterSpec:
    parsed = parsing.cluster("demo", {**MANIFEST, **sections})
    assert parsed.spec is not None, parsed.problems
    return parsed.spec


def problems(sections: dict[str, Any]) -> list[str]:
    return [str(each) for each in parsing.cluster("demo", {**MANIFEST, **sections}).problems]


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386, as it is written there."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


@given(OBJECTS.map(comparing.without_nulls), OBJECTS)
def test_merging_is_a_merge_patch(base: dict[str, Any], over: dict[str, Any]) -> None:
    # Keys without a value that are left are dropped before an object is written.
    assert comparing.without_nulls(merged(base, over)) == comparing.without_nulls(
        merge_patch(base, over)
    )


@given(OBJECTS, OBJECTS)
def test_merging_changes_neither_of_both(base: dict[str, Any], over: dict[str, Any]) -> None:
    before = repr((base, over))
    merged(base, over)
    assert repr((base, over)) == before
    assert merged(base, None) == merged(base, {}) == base


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_component_has_the_fields_of_pods(component: str) -> None:
    section = {
        "image": {"repository": "mine", "tag": "1"},
        "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "env": [{"name": "A", "value": "1"}],
        "envFrom": [{"secretRef": {"name": "s"}}],
        "podLabels": {"team": "data"},
        "podAnnotations": {"note": "x"},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"operator": "Exists"}],
        "affinity": {},
        "priorityClassName": "high",
        "probes": {"liveness": {"periodSeconds": 5}},
    }
    found = getattr(spec({component: section}), component)
    assert found.image.repository == "mine" and found.resources.requests["cpu"] == "1"
    assert found.probes.liveness == {"periodSeconds": 5} and found.probes.startup is None
    assert found.env == ({"name": "A", "value": "1"},)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"image": {"repository": "UPPER"}}, "spec.image.repository"),
        ({"image": {"repository": "a b"}}, "spec.image.repository"),
        ({"image": {"repository": ""}}, "spec.image.repository"),
        ({"image": {"tag": "-x"}}, "spec.image.tag"),
        ({"image": {"tag": "a" * 129}}, "spec.image.tag"),
        ({"image": {"digest": "sha256:xyz"}}, "spec.image.digest"),
        ({"image": {"pullPolicy": "Sometimes"}}, "spec.image.pullPolicy"),
        ({"image": {"pullSecrets": ["Bad_Name"]}}, "spec.image.pullSecrets[0]"),
        ({"image": {"pullSecrets": "one"}}, "spec.image.pullSecrets"),
        ({"executor": {"resources": {"limits": {"memory": "4GiB"}}}}, "limits.memory"),
        ({"executor": {"resources": {"limits": {"memory": True}}}}, "limits.memory"),
        ({"executor": {"resources": {"limits": {"memory": 1.5}}}}, "limits.memory"),
        ({"executor": {"cache": {"size": "big"}}}, "spec.executor.cache.size"),
        ({"executor": {"cache": {"size": 10}}}, "spec.executor.cache.size"),
        ({"executor": {"replicas": -1}}, "spec.executor.replicas"),
        ({"executor": {"replicas": 1001}}, "spec.executor.replicas"),
        ({"executor": {"replicas": True}}, "spec.executor.replicas"),
        ({"executor": {"minReplicas": 0}}, "spec.executor.minReplicas"),
        ({"executor": {"autoscaling": {"memoryPercent": 101}}}, "memoryPercent"),
        ({"executor": {"flight": {"serviceType": "ExternalName"}}}, "serviceType"),
        ({"executor": {"flight": {"advertisedHost": "a b"}}}, "advertisedHost"),
        ({"executor": {"flight": {"advertisedPort": 65536}}}, "advertisedPort"),
        ({"scheduler": {"replicas": 101}}, "spec.scheduler.replicas"),
        ({"head": {"terminationGracePeriodSeconds": -1}}, "terminationGracePeriodSeconds"),
        ({"head": {"terminationGracePeriodSeconds": 86401}}, "terminationGracePeriodSeconds"),
        ({"state": {"secretName": ".starts-with-a-dot"}}, "spec.state.secretName"),
        ({"head": {"podLabels": {"a": "x" * 64}}}, "spec.head.podLabels"),
        ({"head": {"env": [1]}}, "spec.head.env"),
        ({"head": {"env": {"A": "1"}}}, "spec.head.env"),
        ({"head": []}, "spec.head"),
    ],
)
def test_a_wrong_value_is_told_with_its_path(sections: dict[str, Any], said: str) -> None:
    (problem,) = problems(sections)
    assert said in problem.partition(": ")[0]
    assert problem.partition(": ")[2]


@pytest.mark.parametrize(
    "sections",
    [
        {"image": {"repository": "registry.example:5000/team/caraway"}},
        {"image": {"digest": "sha256:" + "a" * 64}},
        {"executor": {"replicas": 0}},
        {"executor": {"replicas": 1000, "minReplicas": 1, "maxReplicas": 1000}},
        {"executor": {"flight": {"advertisedHost": "$(POD_NAME).example.com"}}},
        {"executor": {"cache": {"size": "1.5Ti", "enabled": False}}},
        {"head": {"terminationGracePeriodSeconds": 0}},
        {"scheduler": {"topologySpreadConstraints": []}},
    ],
)
def test_values_at_the_edge_are_accepted(sections: dict[str, Any]) -> None:
    assert problems(sections) == []


def test_defaults_are_those_of_a_small_cluster() -> None:
    found = spec({})
    assert (found.scheduler.replicas, found.executor.replicas) == (1, 2)
    assert found.scheduler.termination_grace_period_seconds is None
    assert found.executor.cache.enabled and not found.executor.cache.retain
    assert found.state.storage.enabled and found.state.storage.retain
    assert not found.executor.flight.enabled and found.executor.max_replicas is None


def test_no_spread_and_an_empty_spread_are_not_the_same() -> None:
    """Without the key there is a default; an empty list turns it off."""
    assert spec({"head": {}}).head.topology_spread_constraints is None
    given_none = spec({"head": {"topologySpreadConstraints": []}})
    assert given_none.head.topology_spread_constraints == ()
