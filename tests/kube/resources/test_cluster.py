"""The spec of a cluster: rules between fields, names, and URLs without passwords."""

from typing import Any

import pytest

from caraway_kube.resources import parsing
from caraway_kube.resources.cluster import CarawayClusterSpec

MANIFEST = {"manifest": {"name": "app"}}


def parsed(sections: dict[str, Any]) -> CarawayClusterSpec:
    found = parsing.cluster("demo", {**MANIFEST, **sections})
    assert found.spec is not None, found.problems
    return found.spec


def problems(sections: dict[str, Any], **base: Any) -> list[str]:
    found = parsing.cluster("demo", {**(base or MANIFEST), **sections})
    return [str(each) for each in found.problems]


@pytest.mark.parametrize(
    "url",
    ["redis://h:6379", "rediss://h", "redis://h:6379/2?prefix=shop", "redis://[::1]:6379"],
)
def test_a_redis_without_a_password_is_taken(url: str) -> None:
    found = parsed({"redis": {"url": url}})
    assert found.redis is not None and found.redis.url == url


@pytest.mark.parametrize(
    "url",
    [
        "redis://:Geheim@h:6379",
        "redis://user:Geheim@h",
        "rediss://user@h",
        "http://Geheim",
        "unix:///Geheim.sock",
        "Geheim",
        "redis://",
        "redis://h Geheim",
        "redis://h\nGeheim",
        "redis://h\n",
    ],
)
def test_a_redis_with_a_password_is_refused_without_its_text(url: str) -> None:
    (problem,) = problems({"redis": {"url": url}})
    assert problem.startswith("spec.redis.url: ")
    assert "without a password" in problem and "Geheim" not in problem


@pytest.mark.parametrize(
    ("sections", "path"),
    [
        ({"organization": "a b"}, "spec.organization"),
        ({"organization": ""}, "spec.organization"),
        ({"logFormat": "xml"}, "spec.logFormat"),
        ({"paused": "true"}, "spec.paused"),
        ({"stopped": 1}, "spec.stopped"),
        ({"secrets": [{"name": "Vault", "secretName": "v"}]}, "spec.secrets[0].name"),
        ({"secrets": [{"name": "vault"}]}, "spec.secrets[0].secretName"),
        ({"auth": {"apiKeys": [{"name": "k"}]}}, "spec.auth.apiKeys[0].key"),
        ({"auth": {"apiKeys": [{"name": "k", "key": "a/b"}]}}, "spec.auth.apiKeys[0].key"),
        ({"auth": {"apiKeys": [{"name": "k", "key": "a", "access": "admin"}]}},
         "spec.auth.apiKeys[0].access"),
        ({"tls": {"dnsNames": ["a b"]}}, "spec.tls.dnsNames[0]"),
        ({"tls": {"dnsNames": [f"h{n}" for n in range(33)]}}, "spec.tls.dnsNames"),
        ({"redis": {"urlFrom": {"name": "r"}}}, "spec.redis.urlFrom.key"),
        ({"resultStore": {}}, "spec.resultStore.url"),
        ({"resultStore": {"url": "s3://b", "params": {"a": ""}}}, "spec.resultStore.params.a"),
        ({"resultStore": {"url": "s3://b", "secretParams": [
            {"param": "a/b", "name": "s", "key": "k"}]}}, "spec.resultStore.secretParams[0].param"),
        ({"service": {"loadBalancerSourceRanges": ["10.0.0.0"]}},
         "spec.service.loadBalancerSourceRanges[0]"),
        ({"service": {"externalTrafficPolicy": "local"}}, "spec.service.externalTrafficPolicy"),
        ({"monitoring": {"interval": "30"}}, "spec.monitoring.interval"),
        ({"monitoring": {"interval": "1h"}}, "spec.monitoring.interval"),
        ({"updateStrategy": {"progressDeadlineSeconds": 29}},
         "spec.updateStrategy.progressDeadlineSeconds"),
        ({"updateStrategy": {"minReadyExecutors": -1}}, "spec.updateStrategy.minReadyExecutors"),
        ({"network": {"clients": "all"}}, "spec.network.clients"),
        ({"serviceAccount": {"name": "A"}}, "spec.serviceAccount.name"),
        ({"manifest": "name: app"}, "spec.manifest"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_with_its_path(sections: dict[str, Any], path: str) -> None:
    (problem,) = problems(sections)
    assert problem.startswith(f"{path}: ")


@pytest.mark.parametrize("spec", [{}, {"redis": None}, {"manifestFrom": None}])
def test_a_manifest_is_required(spec: dict[str, Any]) -> None:
    found = parsing.cluster("demo", spec)
    assert any("manifest" in str(each) for each in found.problems)


def test_two_manifests_are_one_too_many() -> None:
    both = {"manifestFrom": {"configMap": {"name": "c"}}}
    assert any("mutually exclusive" in each for each in problems(both))


@pytest.mark.parametrize("redis", [{}, {"url": "redis://h", "urlFrom": {"name": "r", "key": "k"}}])
def test_a_redis_has_exactly_one_url(redis: dict[str, Any]) -> None:
    (problem,) = problems({"redis": redis})
    assert "url" in problem and "urlFrom" in problem


def test_a_config_map_has_a_usual_key() -> None:
    found = parsing.cluster("demo", {"manifestFrom": {"configMap": {"name": "c"}}})
    assert found.spec is not None and found.spec.manifest_from is not None
    assert found.spec.manifest_from.config_map.key == "caraway.yaml"


@pytest.mark.parametrize("spec", [None, [], "x", 1, True])
def test_a_spec_that_is_no_mapping_is_a_problem_and_no_crash(spec: Any) -> None:
    found = parsing.cluster("demo", spec)
    assert found.spec is None and found.problems


def test_lists_are_values_that_cannot_change() -> None:
    found = parsed({"tls": {"dnsNames": ["a", "b"]}, "auth": {"apiKeys": [
        {"name": "k", "key": "a"}, {"name": "k", "key": "b", "access": "rw"}]}})  # fmt: skip
    assert found.tls.dns_names == ("a", "b")
    assert [each.access for each in found.auth.api_keys] == ["ro", "rw"]
    with pytest.raises(ValueError, match="frozen"):
        found.paused = True


def test_equal_specs_are_equal_values() -> None:
    """The reconciler compares specs to see whether anything changed."""
    sections = {"executor": {"replicas": 3}, "redis": {"url": "redis://h"}}
    assert parsed(sections) == parsed(dict(reversed(sections.items())))
    assert parsed(sections) != parsed({**sections, "paused": True})
