"""How a runtime is, from the objects that the operator and Kubernetes keep."""

from datetime import UTC, datetime
from typing import Any

import pytest

from caraway_management.deployers.kubernetes import observing
from caraway_management.deployers.kubernetes.objects import DEPLOYMENT_ANNOTATION
from caraway_management.deployers.protocol import Instance
from caraway_management.domain.deployments import Code, Phase


def cluster(phase: str | None = None, **changes: Any) -> dict[str, Any]:
    metadata = {"generation": 3, "annotations": {DEPLOYMENT_ANNOTATION: "7"}}
    return {"metadata": metadata, "status": {"observedGeneration": 3, "phase": phase, **changes}}


def pod(*containers: dict[str, Any], requests: dict[str, str] | None = None,
        conditions: list[dict[str, str]] | None = None) -> dict[str, Any]:  # fmt: skip
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"resources": {"requests": requests}}, {}]},
        "status": {"conditions": conditions, "containerStatuses": list(containers)},
    }


def unplaced(message: str, **requests: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return pod(conditions=[{"type": "Ready", "status": "False"}, condition], requests=requests)


def waiting(why: str, **ended: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": why}}, "lastState": {"terminated": ended}}


@pytest.mark.parametrize(
    ("found", "phase"),
    [
        ({"metadata": {}}, Phase.STARTING),
        (cluster(), Phase.STARTING),
        (cluster("Ready"), Phase.READY),
        (cluster("Failed"), Phase.FAILED),
        (cluster("Ready", observedGeneration=2), Phase.STARTING),
        (cluster("Failed", observedGeneration=2), Phase.STARTING),
        (cluster("Pending"), Phase.STARTING),
    ],
)
def test_only_a_status_of_this_generation_counts(found: dict[str, Any], phase: Phase) -> None:
    assert observing.observe(found, [], {}).phase is phase


def test_a_runtime_has_its_deployment_and_endpoints() -> None:
    found = observing.observe(
        cluster("Ready", endpoints={"http": "http://a", "flight": "grpc://a"}), [], {}
    )
    assert (found.deployment_id, found.endpoint, found.flight_endpoint) == (
        7, "http://a", "grpc://a"
    )  # fmt: skip
    assert (found.metrics_endpoint, found.problem) == (None, None)
    strange = cluster()
    strange["metadata"]["annotations"] = {DEPLOYMENT_ANNOTATION: "x"}
    assert observing.observe(strange, [], {}).deployment_id is None


def test_a_failure_is_one_line_of_bounded_length() -> None:
    problem = observing.observe(cluster("Failed", message="a\n  b" + "x" * 600), [], {}).problem
    assert problem is not None
    assert problem.message.startswith("a bx") and len(problem.message) == 500
    unsaid = observing.observe(cluster("Failed"), [], {}).problem
    assert unsaid is not None and unsaid.message == "it failed"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu.", Code.INSUFFICIENT_CPU),
        ("exceeded quota: q, requested: requests.cpu=4", Code.INSUFFICIENT_CPU),
        ("0/3 nodes are available: 3 insufficient memory.", Code.INSUFFICIENT_MEMORY),
        ("3 Insufficient ephemeral-storage", Code.INSUFFICIENT_STORAGE),
        ("pod has unbound immediate PersistentVolumeClaims", Code.INSUFFICIENT_STORAGE),
        ("0/3 nodes are available: 3 Too many pods.", Code.INSUFFICIENT_INSTANCES),
        ("3 node(s) had an untolerated taint", None),
        ("", None),
    ],
)
def test_a_pod_that_has_no_place_is_short_of_something(message: str, code: Code | None) -> None:
    problem = observing.shortage([pod(), unplaced(message)], {})
    assert (problem.code if problem else None) is code


@pytest.mark.parametrize(
    ("requests", "code"),
    [
        ({"cpu": "9"}, Code.POD_EXCEEDS_NODE_CAPACITY),
        ({"memory": "3Gi"}, Code.POD_EXCEEDS_NODE_CAPACITY),
        ({"cpu": "8000m", "memory": "2Gi"}, Code.INSUFFICIENT_CPU),
        ({}, Code.INSUFFICIENT_CPU),
    ],
)
def test_a_pod_that_no_node_holds_is_told(requests: dict[str, str], code: Code) -> None:
    largest = {"cpu": 8.0, "memory": 2.0 * 1024**3}
    problem = observing.shortage([unplaced("Insufficient cpu", **requests)], largest)
    assert problem is not None and problem.code is code


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (waiting("ContainerCreating"), None),
        ({"state": {"running": {}}}, None),
        ({}, None),
        (waiting("ImagePullBackOff"), "the image cannot be pulled; check registry, image"),
        (waiting("CrashLoopBackOff"), "the runtime cannot start: it ends right after its start"),
        (waiting("CrashLoopBackOff", reason="OOMKilled"), "cannot start: OOMKilled"),
        (
            waiting("RunContainerError", message="no\nmanifest", reason="Error"),
            "start: no manifest",
        ),
    ],
)
def test_a_pod_that_does_not_start_says_why(state: dict[str, Any], message: str | None) -> None:
    problem = observing.observe(cluster(), [pod(), pod(state)], {}).problem
    assert (problem is None) is (message is None)
    assert problem is None or (message or "") in problem.message


def test_what_pods_are_short_of_comes_before_their_crashes() -> None:
    pods = [pod(waiting("CrashLoopBackOff")), unplaced("Too many pods")]
    problem = observing.observe(cluster(), pods, {}).problem
    assert problem is not None and problem.code is Code.INSUFFICIENT_INSTANCES
    assert observing.observe(cluster("Ready"), pods, {}).problem is None


def test_instances_are_sorted_by_name() -> None:
    pods: list[dict[str, Any]] = [
        {"metadata": {"name": "b"}, "status": {"phase": "Failed"}},
        {"metadata": {"name": "a"}, "status": {
            "startTime": "2026-01-01T00:00:00Z", "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]}},
        {"metadata": {"name": "c"}},
    ]  # fmt: skip
    assert observing.instances(pods) == [
        Instance("a", "ready", datetime(2026, 1, 1, tzinfo=UTC)),
        Instance("b", "failed"),
        Instance("c", "pending"),
    ]
