"""The reason of a failed pod is known after its first failure."""

from typing import Any

import pytest

from caraway_operator.states import pods

ENDED = {"exitCode": 1, "reason": "Error", "message": "reading\nerror: no bucket 'answers'\n"}
WORDS = "pod shop-scheduler-0: Error with exit code 1: error: no bucket 'answers'"


def pod(*containers: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "shop-scheduler-0", "labels": {}}
    return {"metadata": metadata, "status": {"containerStatuses": list(containers)}}


@pytest.mark.parametrize(
    "container",
    [
        {"state": {"terminated": ENDED}},
        {"state": {"running": {}}, "lastState": {"terminated": ENDED}, "ready": False},
    ],
)
def test_a_failed_container_is_reported_with_its_last_log_line(
    container: dict[str, Any],
) -> None:
    problem = pods.pod_view(pod({"ready": True, "state": {"running": {}}}, container)).problem

    assert problem == pods.WorkloadProblem("Error", WORDS)


def test_back_off_takes_precedence_and_ready_containers_have_no_problem() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    again = {"ready": True, "state": {"running": {}}, "lastState": {"terminated": ENDED}}
    done = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}

    found = pods.pod_view(pod({"state": waiting, "lastState": {"terminated": ENDED}})).problem
    assert found is not None and found.reason == "CrashLoopBackOff"
    assert found.message.endswith("error: no bucket 'answers'")
    assert pods.pod_view(pod(again, done)).problem is None
