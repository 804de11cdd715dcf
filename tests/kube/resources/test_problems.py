"""Problems between the fields of a spec, with the path of each."""

from typing import Any

import pytest

from caraway_kube.resources import problems
from caraway_kube.resources.cluster import CarawayClusterSpec


def found(**fields: Any) -> list[str]:
    spec = CarawayClusterSpec.model_validate({"manifest": {"name": "app"}, **fields})
    return [str(each) for each in problems.of_spec(spec)]


@pytest.mark.parametrize(
    ("location", "path"),
    [((), ""), (("spec",), "spec"), (("spec", "secrets", 0, "name"), "spec.secrets[0].name"),
     ((0, "a"), "[0].a")],
)  # fmt: skip
def test_locations_are_paths(location: tuple[str | int, ...], path: str) -> None:
    assert problems.dotted(location) == path


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"manifest": None}, "spec.manifest: one of manifest and manifestFrom is required"),
        ({"manifestFrom": {"configMap": {"name": "m", "key": "k"}}},
         "spec.manifestFrom: manifest and manifestFrom are mutually exclusive"),
        ({"executor": {"minReplicas": 1}},
         "spec.executor.minReplicas: requires maxReplicas, which turns autoscaling on"),
        ({"executor": {"minReplicas": 3, "maxReplicas": 2}},
         "spec.executor.minReplicas: 3 is greater than maxReplicas, 2"),
        ({"executor": {"terminationGracePeriodSeconds": 60, "drainTimeoutSeconds": 60}},
         "spec.executor.terminationGracePeriodSeconds: must be greater than drainTimeoutSeconds"),
        ({"secrets": [{"name": "a", "secretName": "x"}, {"name": "a", "secretName": "y"}]},
         "spec.secrets[1].name: the store 'a' is declared twice"),
        ({"secrets": [{"name": "secrets", "secretName": "x"}]},
         "spec.secrets[0].name: 'secrets' is reserved"),
        ({"secrets": [{"name": "caraway_x", "secretName": "x"}]},
         "spec.secrets[0].name: 'caraway_x' is reserved"),
        ({"redis": {}}, "spec.redis: exactly one of url and urlFrom is required"),
        ({"scheduler": {"resources": {"limits": {"memory": "512Mi"}}}},
         "spec.scheduler.resources: memory 512Mi is too low; the minimum is 768Mi"),
        ({"head": {"resources": {"requests": {"memory": "100M"}}}},
         "spec.head.resources: memory 100M is too low; the minimum is 512Mi"),
        ({"executor": {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1900m"}}}},
         "spec.executor.resources.requests.cpu: 2 is greater than the limit, 1900m"),
    ],
)  # fmt: skip
def test_problems(fields: dict[str, Any], problem: str) -> None:
    assert [each for each in found(**fields) if each.startswith(problem)], found(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"manifest": None, "manifestFrom": {"configMap": {"name": "m", "key": "k"}}},
        {"executor": {"minReplicas": 2, "maxReplicas": 2}},
        {"executor": {"maxReplicas": 2}},
        {"executor": {"resources": {"requests": {"cpu": "2", "memory": "1Gi"},
                                    "limits": {"cpu": "2000m", "memory": "1024Mi"}}}},
        {"secrets": [{"name": "a", "secretName": "x"}, {"name": "b", "secretName": "x"}]},
    ],
)  # fmt: skip
def test_specs_without_problems(fields: dict[str, Any]) -> None:
    assert found(**fields) == []


def test_names_of_clusters() -> None:
    assert problems.of_name("shop") == ()
    (problem,) = problems.of_name("Shop!")
    assert problem.path == "metadata.name"
