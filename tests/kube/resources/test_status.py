"""The status of a cluster against the CRD's schema, which drops unknown fields."""

from typing import Any

import jsonschema

from caraway_kube.resources import crd
from caraway_kube.resources.status import CarawayClusterStatus
from caraway_operator.policy import status
from caraway_operator.policy.status import ClusterFacts, SpecFacts

SCHEMA: dict[str, Any] = crd.cluster()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
    "properties"
]["status"]
FACTS = ClusterFacts(
    name="demo",
    namespace="shop",
    generation=3,
    desired_replicas={"executor": 2, "scheduler": 1},
    spec=SpecFacts(
        problems=["spec.executor.replicas: must be an integer"],
        clamped=["spec.executor.replicas: 9 was lowered to 3"],
        image="caraway:0.1.0",
        version="0.1.0",
    ),
    failures=["a field is immutable"],
)
PROGRESS = {"executor": "demo-executor-1", "since": 1, "purpose": "scale-in"}


def present(value: object) -> object:
    """Return the result of a merge patch that is applied to an empty object."""
    if isinstance(value, dict):
        return {key: present(each) for key, each in value.items() if each is not None}
    if isinstance(value, (list, tuple)):
        return [present(each) for each in value]
    return value


def unknown(value: object, schema: dict[str, Any], path: str = "status") -> list[str]:
    """Return the paths that are not in the schema."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    if isinstance(value, list):
        return [each for item in value for each in unknown(item, schema["items"], f"{path}[]")]
    if not isinstance(value, dict):
        return []
    found = []
    for key, each in value.items():
        if key in schema.get("properties", {}):
            found += unknown(each, schema["properties"][key], f"{path}.{key}")
        else:
            found.append(f"{path}.{key}")
    return found


def test_the_status_is_valid_for_the_crd() -> None:
    written = present(status.cluster_status(FACTS, {}, PROGRESS, "2026-11-21T16:00:00Z"))
    jsonschema.validate(written, SCHEMA)
    assert unknown(written, SCHEMA) == []
    read = CarawayClusterStatus.model_validate(written)
    assert read.phase and read.conditions and read.progress == PROGRESS
