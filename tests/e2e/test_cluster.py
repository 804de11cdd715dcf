"""`caraway cluster` as a user runs it: a complete cluster on one machine."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from caraway_cluster.folder import ClusterFolder
from tests.kit import valkey
from tests.kit.deadlines import until
from tests.kit.processes import command_lines
from tests.kit.ray_cluster import MARK, assert_nothing_left, marked

PORTS = ["--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--flight", "127.0.0.1:0"]
TIMEOUT_S = 300
BUSY_S = 180
"""The time limit of a step on a busy machine."""
PASSWORD = uuid.uuid4().hex


class Cluster:
    """The cluster commands, over one data directory."""

    def __init__(self, folder: Path) -> None:
        self.mark = uuid.uuid4().hex
        self.folder = folder / "cluster"
        self.environ: dict[str, str] = {}
        (folder / "people.csv").write_text("id,name\n1,Ann\n2,Bob\n")
        self.manifest = folder / "caraway.yaml"
        self.manifest.write_text(
            "version: v1\nkind: Caraway\nname: e2e\n"
            "datasets:\n  - {from: 'file:people.csv', name: people}\n"
        )

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "caraway", "cluster", *arguments]
        return subprocess.run(
            [*command, "--data-dir", str(self.folder)], capture_output=True, text=True,
            timeout=TIMEOUT_S, env={**os.environ, MARK: self.mark, **self.environ},
        )  # fmt: skip

    def up(self, executors: int) -> subprocess.CompletedProcess[str]:
        count = ["--executors", str(executors), "--cores", "1", "--memory", "512MiB"]
        return self.call("up", str(self.manifest), *count, *PORTS, "--detach")

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.call("status", "--format", "json").stdout)
        return {each["name"]: each for each in found["processes"]}

    @property
    def url(self) -> str:
        """Return the URL of the API. The command for it takes seconds on a busy machine."""
        found = ClusterFolder(self.folder).status()
        assert found is not None
        return f"http://{found.endpoints['http']}"

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=60)

    def until_status(self, path: str, status: int) -> None:
        until(lambda: self.get(path).status_code == status, f"{path} is {status}", BUSY_S)

    def sql(self, sql: str) -> Any:
        """Run a statement; retry while the API reports a retryable error."""

        def ask() -> httpx.Response | None:
            answer = httpx.post(f"{self.url}/v1/sql", content=sql, timeout=60)
            return None if answer.status_code == 503 else answer

        answer = until(ask, "the statement is answered", BUSY_S)
        assert answer is not None and answer.status_code == 200, answer
        return answer.json()


@pytest.fixture
def guarded() -> Iterator[str]:
    """Start a Redis with a password; yields its URL."""
    with valkey.serving(tcp=True) as server:
        server.config(requirepass=PASSWORD)
        yield server.tcp_url.replace("://", f"://:{PASSWORD}@")


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    try:
        yield cluster
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            cluster.call("down")
        assert_nothing_left(cluster.mark)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_cluster_from_up_to_down(local: Cluster, guarded: str) -> None:
    local.environ["CARAWAY_STATE"] = guarded
    up = local.up(1)
    assert up.returncode == 0, up.stderr
    assert "The cluster is ready: 1 executor\n" in up.stdout
    assert local.sql("SELECT count(*) AS n FROM people") == [{"n": 2}]
    assert [line for line in command_lines() if "gcs_server" in line]
    assert not [line for line in command_lines() if PASSWORD in line]

    second = local.up(1)
    assert second.returncode == 1
    assert "is already running in" in second.stderr
    assert "cluster down" in second.stderr

    two_ready = "/v1/ready?min_ready_executors=2"
    assert local.get(two_ready).status_code == 503
    assert local.call("scale", "2").returncode == 0
    local.until_status(two_ready, 200)

    os.kill(local.status()["executor-2"]["pid"], signal.SIGKILL)
    until(lambda: local.status()["executor-2"]["restarts"] >= 1, "it was started again", BUSY_S)
    assert local.sql("SELECT name FROM people WHERE id = 2") == [{"name": "Bob"}]

    assert local.call("scale", "1").returncode == 0
    assert set(local.status()) == {"head", "scheduler", "executor-1"}
    local.until_status(two_ready, 503)
    assert local.sql("SELECT name FROM people WHERE id = 1") == [{"name": "Ann"}]

    down = local.call("down")
    assert down.returncode == 0, down.stderr
    assert not marked(local.mark)
    assert local.call("status").returncode == 1


def test_commands_say_when_nothing_runs(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    status = cluster.call("status")
    assert (status.returncode, status.stderr) == (1, "")
    assert "no cluster is running in" in status.stdout
    for command in (["down"], ["scale", "2"]):
        refused = cluster.call(*command)
        assert refused.returncode == 1
        assert "caraway cluster up" in refused.stderr


def test_invalid_manifest_starts_nothing(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.manifest.write_text("kind: Nonsense\n")
    refused = cluster.up(1)
    assert refused.returncode == 1
    assert "caraway.yaml" in refused.stderr
    assert not cluster.folder.exists()
