from typing import Any

from caraway_operator.scheduler_gate import with_gate


def deployment(path: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": path, "port": "metrics"}, "periodSeconds": 3,
             "failureThreshold": 100}  # fmt: skip
    container = {"name": "scheduler", "startupProbe": probe, "readinessProbe": {"a": 1}}
    return {"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}}


def container(found: list[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = found[0]["spec"]["template"]["spec"]["containers"][0]
    return made


def test_the_startup_probe_requires_an_executor() -> None:
    before = deployment("/health")

    made = container(with_gate([before], has_executors=True))

    assert made["startupProbe"] == {
        "httpGet": {"path": "/v1/ready?min_ready_executors=1", "port": "metrics"},
        "periodSeconds": 3,
        "failureThreshold": 1200,
    }
    assert made["readinessProbe"] == {"a": 1}
    assert before == deployment("/health")


def test_a_probe_of_the_user_is_kept() -> None:
    assert with_gate([deployment("/mine")], has_executors=True) == [deployment("/mine")]


def test_without_executors_schedulers_are_not_gated() -> None:
    assert with_gate([deployment("/health")], has_executors=False) == [deployment("/health")]
