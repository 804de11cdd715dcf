"""What a pod says of itself reaches the cluster's condition with its first end."""

from typing import Any

import pytest

from caraway_operator import pods

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
def test_a_container_that_failed_once_is_told_with_its_last_words(
    container: dict[str, Any],
) -> None:
    trouble = pods.view(pod({"ready": True, "state": {"running": {}}}, container)).trouble

    assert trouble == pods.Trouble("Error", WORDS)


def test_back_off_goes_before_and_what_is_ready_again_is_no_trouble() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    again = {"ready": True, "state": {"running": {}}, "lastState": {"terminated": ENDED}}
    done = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}

    found = pods.view(pod({"state": waiting, "lastState": {"terminated": ENDED}})).trouble
    assert found is not None and found.reason == "CrashLoopBackOff"
    assert found.message.endswith("error: no bucket 'answers'")
    assert pods.view(pod(again, done)).trouble is None
