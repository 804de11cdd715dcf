"""What the operator says of a cluster, against the schema: what is not in it would be dropped."""

from typing import Any

import jsonschema

from caraway_operator import status
from caraway_operator.resources import crd
from caraway_operator.resources.status import ClusterStatus
from caraway_operator.status import Facts

SCHEMA: dict[str, Any] = crd.cluster()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
    "properties"
]["status"]
FACTS = Facts(
    name="demo",
    namespace="shop",
    generation=3,
    wish={"executor": 2, "scheduler": 1},
    problems=["spec.executor.replicas: must be a whole number"],
    clamped=["spec.executor.replicas: 9 was lowered to 3"],
    failures=["a field that cannot be changed"],
    image="caraway:0.1.0",
    version="0.1.0",
)
PROGRESS = {"executor": "demo-executor-1", "since": 1, "purpose": "scale-in"}


def present(value: object) -> object:
    """What is left of a merge patch that is applied to nothing."""
    if isinstance(value, dict):
        return {key: present(each) for key, each in value.items() if each is not None}
    if isinstance(value, (list, tuple)):
        return [present(each) for each in value]
    return value


def unknown(value: object, schema: dict[str, Any], path: str = "status") -> list[str]:
    """Paths that the schema does not have."""
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


def test_nothing_of_a_status_is_dropped_or_refused() -> None:
    written = present(status.status(FACTS, {}, PROGRESS, "2026-11-21T16:00:00Z"))
    jsonschema.validate(written, SCHEMA)
    assert unknown(written, SCHEMA) == []
    read = ClusterStatus.model_validate(written)
    assert read.phase and read.conditions and read.progress == PROGRESS
