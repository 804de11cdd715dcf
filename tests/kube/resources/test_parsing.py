from typing import Any

import pytest

from caraway_kube.resources import parsing

MANIFEST = {"manifest": {"name": "app"}}


def problems(spec: Any, name: str = "demo") -> list[str]:
    return [str(problem) for problem in parsing.cluster(name, spec).problems]


def test_a_manifest_is_sufficient() -> None:
    spec = parsing.cluster("demo", MANIFEST).spec
    assert spec is not None
    assert (spec.scheduler.replicas, spec.executor.replicas) == (1, 2)
    assert spec.executor.max_replicas is None
    assert spec.executor.cache.size == "10Gi"
    assert (spec.executor.cache.retain, spec.state.storage.retain) == (False, True)


def test_quantities_may_be_numbers() -> None:
    sections = {"executor": {"resources": {"limits": {"cpu": 2, "memory": "4Gi"}}}}
    spec = parsing.cluster("demo", {**MANIFEST, **sections}).spec
    assert spec is not None
    assert spec.executor.resources.limits == {"cpu": "2", "memory": "4Gi"}


def test_null_and_unknown_keys_are_dropped() -> None:
    spec = {**MANIFEST, "redis": None, "executor": {"replicas": None, "ofTomorrow": 1}}
    assert parsing.cluster("demo", spec) == parsing.cluster("demo", {**MANIFEST, "executor": {}})


def test_null_in_a_probe_is_kept_because_it_removes_a_key() -> None:
    probes = {"startup": {"httpGet": None}}
    spec = parsing.cluster("demo", {**MANIFEST, "executor": {"probes": probes}}).spec
    assert spec is not None and spec.executor.probes.startup == {"httpGet": None}


def test_every_malformed_field_is_reported_with_its_path() -> None:
    spec = {
        "manifest": "name: app",
        "paused": "yes",
        "executor": {"replicas": "3", "resources": {"limits": {"memory": "4GiB"}}},
        "secrets": [{"name": "vault"}],
        "service": {"type": "Ingress"},
        "scheduler": {"replicas": 101},
    }
    assert problems(spec) == [
        "spec.paused: must be true or false",
        "spec.manifest: must be a mapping of keys to values",
        "spec.scheduler.replicas: Input should be less than or equal to 100",
        "spec.executor.resources.limits.memory: '4GiB' is not a quantity; write for example 500m, "
        "2 or 4Gi",
        "spec.executor.replicas: must be an integer",
        "spec.secrets[0].secretName: is missing",
        "spec.service.type: Input should be 'ClusterIP', 'NodePort' or 'LoadBalancer'",
    ]


@pytest.mark.parametrize("spec", [None, [], "text"])
def test_a_spec_that_is_not_a_mapping(spec: Any) -> None:
    assert problems(spec) == ["spec: must be a mapping of keys to values"]


@pytest.mark.parametrize(
    ("sections", "problem"),
    [
        ({"manifest": None}, "spec.manifest: one of manifest and manifestFrom is required"),
        (
            {"manifestFrom": {"configMap": {"name": "m"}}},
            "spec.manifestFrom: manifest and manifestFrom are mutually exclusive",
        ),
        (
            {"executor": {"minReplicas": 2}},
            "spec.executor.minReplicas: requires maxReplicas, which turns autoscaling on",
        ),
        (
            {"executor": {"minReplicas": 4, "maxReplicas": 3}},
            "spec.executor.minReplicas: 4 is greater than maxReplicas, 3",
        ),
        (
            {"executor": {"drainTimeoutSeconds": 60, "terminationGracePeriodSeconds": 60}},
            "spec.executor.terminationGracePeriodSeconds: must be greater than drainTimeoutSeconds"
            ", 60; otherwise pods are killed while they drain",
        ),
        (
            {"head": {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}}},
            "spec.head.resources.requests.cpu: 2 is greater than the limit, 1500m",
        ),
        (
            {"executor": {"resources": {"requests": {"memory": "500Mi"}}}},
            "spec.executor.resources: memory 500Mi is too low; the minimum is 768Mi",
        ),
        ({"redis": {}}, "spec.redis: exactly one of url and urlFrom is required"),
        (
            {"secrets": [{"name": "v", "secretName": "a"}, {"name": "v", "secretName": "b"}]},
            "spec.secrets[1].name: the store 'v' is declared twice",
        ),
        (
            {"secrets": [{"name": "secrets", "secretName": "a"}]},
            "spec.secrets[0].name: 'secrets' is reserved; choose another name",
        ),
    ],
)
def test_conflicting_fields(sections: dict[str, Any], problem: str) -> None:
    assert problems({**MANIFEST, **sections}) == [problem]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a" * 41, "41 characters"),
        ("a.b", "cannot be the name of a Service"),
        ("1a", "cannot be the name of a Service"),
        ("demo-head", "an object of the cluster 'demo'"),
        ("my-demo-state", "an object of the cluster 'my-demo'"),
    ],
)
def test_invalid_cluster_names(name: str, words: str) -> None:
    [problem] = problems(MANIFEST, name)
    assert problem.startswith("metadata.name: ") and words in problem


@pytest.mark.parametrize("name", ["a", "a" * 40, "head", "demo-heads", "x1"])
def test_valid_cluster_names(name: str) -> None:
    assert not problems(MANIFEST, name)


def test_limits_have_the_fields_of_the_management_api() -> None:
    answer = {
        "apps": -1,
        "replicas": 3,
        "pods": 10,
        "users": -1,
        "api_rps": 100,
        "request_timeout_secs": 60,
        "sql_query_timeout_secs": 30,
        "sql_concurrent_queries": 8,
        "resources": {"max_cpu": 4, "max_memory_gi": 16},
    }
    limits = parsing.limits(answer).spec
    assert limits is not None
    assert limits.model_dump(by_alias=True, exclude={"organization"}) == answer
    without = parsing.limits({**answer, "resources": None}).spec
    assert without is not None and without.resources is None


def test_limits_below_minus_one_are_rejected() -> None:
    [problem] = parsing.limits({"replicas": -2}).problems
    assert str(problem) == "spec.replicas: Input should be greater than or equal to -1"
