"""Deploys projects with the real commands: `caraway management` and the runtimes it starts."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kit import deadlines
from tests.kit.processes import CARAWAY

pytestmark = pytest.mark.full
_MANIFEST = "version: v1\nkind: Caraway\nname: shop\n"
_START_S = 240.0


@contextlib.contextmanager
def _service(data: Path) -> Iterator[str]:
    """Run `caraway management`; yield its URL."""
    reader, writer = os.pipe()
    log = data.parent / "management.log"
    with log.open("a") as out:
        process = subprocess.Popen(
            [CARAWAY, "management", "--data-dir", data, "--http", "127.0.0.1:0",
             "--ready-fd", str(writer)],
            pass_fds=(writer,), stdout=out, stderr=out,
        )  # fmt: skip
    os.close(writer)
    try:
        with os.fdopen(reader) as pipe:
            line = pipe.readline()
        assert line, log.read_text()
        yield f"http://{json.loads(line)['http']}"
    finally:
        process.terminate()
        assert process.wait(60) == 0, log.read_text()


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    data = tmp_path / "data"
    yield data
    for file in data.glob("projects/*/process"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(file.read_text().split()[0]), signal.SIGKILL)


def test_a_project_from_init_to_its_end(data: Path) -> None:
    done = subprocess.run(
        [CARAWAY, "management", "init", "--data-dir", data, "--org", "acme"],
        capture_output=True, check=True, text=True, timeout=120,
    )  # fmt: skip
    token = json.loads(done.stdout)["token"]
    with _service(data) as url, _client(url, token) as client:
        made = client.post("/v1/projects", json={"name": "shop", "manifest": _MANIFEST})
        project = f"/v1/projects/{made.raise_for_status().json()['id']}"
        deployment = _deploy(client, project)
        assert deployment["status"] == "succeeded", deployment
        endpoint = client.get(project).json()["endpoint"]
        assert _asked(client, project) == [{"one": 1}]
        pid = _pid(data)
        os.kill(pid, signal.SIGKILL)
        deadlines.until(lambda: _pid(data) not in (0, pid), "another process", _START_S)
        deadlines.until(lambda: _answers(client, project), "an answer again", _START_S)
        assert client.get(project).json()["endpoint"] == endpoint
        pid = _pid(data)
    # The runtime outlives the service, and the next one finds it.
    with _service(data) as url, _client(url, token) as client:
        assert _asked(client, project) == [{"one": 1}]
        assert _pid(data) == pid
        client.post(f"{project}/pause").raise_for_status()
        deadlines.until(lambda: not _exists(pid), "the end of the runtime", _START_S)
        resumed = client.post(f"{project}/resume").raise_for_status().json()
        ended = _ended(client, f"{project}/deployments/{resumed['deployment_id']}")
        assert ended["status"] == "succeeded", ended
        assert _asked(client, project) == [{"one": 1}]
        bad = {"manifest": _MANIFEST + "datasets: [{from: 'nowhere:x', name: a}]\n"}
        if client.put(project, json=bad).status_code == 200:
            failed = _deploy(client, project)
            assert (failed["status"], failed["error_code"]) == ("failed", "unable_to_start")
            assert str(data) not in failed["error_message"]
        assert client.delete(project).status_code == 204
        deadlines.until(lambda: not list(data.glob("projects/*/")), "no folder", _START_S)


def _client(url: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=90)


def _deploy(client: httpx.Client, project: str) -> dict[str, Any]:
    answer = client.post(f"{project}/deployments", json={})
    assert answer.status_code == 202, answer.text
    return _ended(client, f"{project}/deployments/{answer.json()['id']}")


def _ended(client: httpx.Client, path: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = client.get(f"{path}?wait=30").json()
        return None if found["status"] in ("queued", "in_progress") else found

    found = deadlines.until(look, "the end of the deployment", _START_S)
    assert found is not None
    return found


def _asked(client: httpx.Client, project: str) -> Any:
    endpoint = client.get(project).json()["endpoint"]
    keys = client.get(f"{project}/api-keys").json()
    answer = httpx.post(
        f"{endpoint}/v1/sql",
        content="SELECT 1 AS one",
        headers={"content-type": "text/plain", "x-api-key": keys.get("api_key", "")},
        timeout=60,
    )
    return answer.raise_for_status().json()


def _answers(client: httpx.Client, project: str) -> bool:
    try:
        return bool(_asked(client, project))
    except httpx.TransportError:
        return False


def _pid(data: Path) -> int:
    """Return the process of the only project; 0 while there is none."""
    for file in data.glob("projects/*/process"):
        return int(file.read_text().split()[0])
    return 0


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
