from typing import Any

from caraway_operator.gating import gated


def deployment(path: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": path, "port": "metrics"}, "periodSeconds": 3,
             "failureThreshold": 100}  # fmt: skip
    container = {"name": "scheduler", "startupProbe": probe, "readinessProbe": {"a": 1}}
    return {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}}


def container(found: list[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = found[0]["spec"]["template"]["spec"]["containers"][0]
    return made


def test_a_scheduler_gets_requests_once_an_executor_works_for_it() -> None:
    before = deployment("/health")

    made = container(gated([before], has_executors=True))

    assert made["startupProbe"] == {
        "httpGet": {"path": "/v1/ready?min_ready_executors=1", "port": "metrics"},
        "periodSeconds": 3,
        "failureThreshold": 1200,
    }
    assert made["readinessProbe"] == {"a": 1}
    assert before == deployment("/health")


def test_a_probe_of_the_user_is_left_alone() -> None:
    assert gated([deployment("/mine")], has_executors=True) == [deployment("/mine")]


def test_without_executors_there_is_nothing_to_wait_for() -> None:
    assert gated([deployment("/health")], has_executors=False) == [deployment("/health")]
