"""The probes of each component."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from caraway_cluster import head
from caraway_kube import naming
from tests.operator.manifests.clusters import container, desired


def test_another_probe_handler_replaces_the_default() -> None:
    probes = {"readiness": {"exec": {"command": ["true"]}, "timeoutSeconds": 9}}
    found = container(desired({"executor": {"probes": probes}}), "executor")["readinessProbe"]
    assert found["exec"] == {"command": ["true"]} and found["timeoutSeconds"] == 9
    assert "httpGet" not in found


@pytest.mark.parametrize(
    ("age_s", "code"),
    [
        pytest.param(None, 0, id="an image of an earlier release makes no file"),
        pytest.param(5, 0, id="fresh"),
        pytest.param(90, 1, id="old"),
    ],
)
def test_the_probe_of_the_head_asks_for_its_file(
    tmp_path: Path, age_s: int | None, code: int
) -> None:
    file = tmp_path / head.ALIVE
    if age_s is not None:
        file.touch()
        os.utime(file, (time.time() - age_s,) * 2)
    command = container(desired(), "head")["livenessProbe"]["exec"]["command"]
    here = [each.replace(naming.HEAD_ALIVE, str(file)) for each in command]
    assert subprocess.run(here).returncode == code


def startup_path(**executor: Any) -> str:
    found = container(desired({"executor": executor}), "scheduler")["startupProbe"]["httpGet"]
    return str(found["path"])


def test_a_scheduler_starts_with_an_executor_and_serves_without() -> None:
    only = container(desired(), "scheduler")

    assert startup_path() == "/v1/ready?probe=pod&wait=50&min_ready_executors=1"
    assert startup_path(replicas=0) == "/v1/ready?probe=pod&wait=50"
    assert startup_path(replicas=0, maxReplicas=2).endswith("&min_ready_executors=1")
    assert only["readinessProbe"]["httpGet"]["path"] == "/v1/ready?probe=pod"
    # It may wait for a dataset for an hour, if it answers.
    assert only["startupProbe"]["failureThreshold"] * 50 == 3600


def test_a_startup_probe_takes_longer_than_its_process_keeps_it_waiting() -> None:
    for component in ("scheduler", "executor"):
        start = container(desired(), component)["startupProbe"]
        assert start["timeoutSeconds"] > 50


def test_a_startup_probe_of_the_user_is_kept() -> None:
    over = {"startup": {"httpGet": {"path": "/mine"}, "failureThreshold": 3}}
    found = container(desired({"scheduler": {"probes": over}}), "scheduler")["startupProbe"]
    assert (found["httpGet"]["path"], found["failureThreshold"]) == ("/mine", 3)
