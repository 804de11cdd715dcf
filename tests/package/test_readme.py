"""The commands of the README, from an empty directory with an empty home."""

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.kit.deadlines import until
from tests.package.environments import ROOT, ran

pytestmark = pytest.mark.full
MOST_MB = 600
_START_S = 500
_RUNS = ("curl ", ".venv/bin/caraway query submit", ".venv/bin/caraway query list",
         ".venv/bin/caraway init", ".venv/bin/caraway validate")  # fmt: skip


def commands() -> list[str]:
    """Return the commands that the README shows for the runtime of `make run`."""
    before, _, _ = (ROOT / "README.md").read_text().partition("## A first cluster")
    blocks = re.findall(r"^```sh\n(.*?)^```", before, flags=re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith(_RUNS)]


def free_address() -> str:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def made_to_run(folder: Path, environ: dict[str, str]) -> Iterator[None]:
    """Run `make run` in a folder; the block begins when the runtime is ready."""
    log = folder / "log.txt"
    with log.open("w") as out:
        process = subprocess.Popen(
            ["make", "run"], cwd=folder, env=environ, stdout=out, stderr=out, start_new_session=True
        )
    try:
        url = f"http://{environ['CARAWAY_HTTP']}/v1/ready"
        until(lambda: _has_ended(process) or _is_ready(url), "the runtime is ready", _START_S)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is not None


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def test_its_commands_work_after_make_run(tmp_path: Path) -> None:
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"caraway-readme-{os.getpid()}"
    home = folder / "home"
    home.mkdir(parents=True)
    files = ran(["git", "ls-files", "-co", "--exclude-standard"], ROOT).splitlines()
    for file in files:
        if (ROOT / file).is_file():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, folder / file)
    address = free_address()
    kept = {name: value for name, value in os.environ.items()
            if name in ("PATH", "LANG") or name.startswith(("PIP_", "SSL_"))}  # fmt: skip
    environ = {**kept, "HOME": str(home), "CARAWAY_HTTP": address,
               "CARAWAY_FLIGHT": "127.0.0.1:0", "CARAWAY_METRICS": "127.0.0.1:0",
               "CARAWAY_HTTP_URL": f"http://{address}"}  # fmt: skip
    try:
        with made_to_run(folder, environ):
            installed = ran(["du", "-sm", folder / ".venv"]).split()[0]
            assert int(installed) < MOST_MB
            shown = commands()
            assert len(shown) > 5
            for line in shown:
                text = line.replace("127.0.0.1:8090", address).replace("curl ", "curl -sSf ")
                done = subprocess.run(
                    text, shell=True, cwd=folder, env=environ, capture_output=True, text=True
                )
                assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
