"""`caraway cluster up`, `scale`, `status` and `down`, behind their flags."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from caraway_cluster import plan as plans
from caraway_cluster.folder import ClusterFolder, ClusterStatus
from caraway_cluster.keeper import Keeper
from caraway_core import logs, manifest, ray_nodes
from caraway_core.errors import CarawayError
from caraway_core.settings import ClusterOptions

_CHECK_S = 0.1
_UP_S = 270.0
_SCALE_S = 180.0
_DOWN_S = 60.0


def up(options: ClusterOptions) -> int:
    """Start a cluster and keep it until SIGTERM or SIGINT, or leave it to a keeper of its own.

    Raises:
        CarawayError: it does not come up; nothing is left running.
    """
    ray_nodes.require()
    manifest.load(options.manifest)
    _check_count(options.executors)
    folder = ClusterFolder(options.data_dir)
    _require_none(folder)
    if options.detach:
        return _detached(options, folder)
    print(f"Starting a cluster of {_count(options.executors)}; Ctrl-C ends it", flush=True)
    with folder.held():
        folder.want(plans.plan(options))
        # Names of processes and what they do are on the terminal; the rest is for the file.
        with folder.log("keeper").open("a") as log:
            logs.configure(options.log_format, stream=log)
            asyncio.run(Keeper(folder, _say).run(lambda status: _say(_banner(folder, status))))
    print("The cluster has ended")
    return 0


def keep(path: str) -> int:
    """Be the keeper of a cluster whose plan lies in the directory."""
    folder = ClusterFolder(Path(path))
    with folder.held():
        logs.configure("text")
        try:
            asyncio.run(Keeper(folder, lambda _: None).run(lambda _: _mark_ready(folder)))
        except CarawayError as exc:
            (folder.path / "failure").write_text(exc.message)
            return 1
    return 0


def scale(data_dir: Path, executors: int) -> int:
    """Ask the keeper for another number of executors, and wait until they are there.

    Raises:
        CarawayError: no cluster runs there, or it does not get there in time.
    """
    _check_count(executors)
    folder = ClusterFolder(data_dir)
    _require(folder)
    folder.want(folder.wanted().scaled(executors))

    def is_done() -> bool:
        status = _require(folder)
        states = [each.state for each in status.processes if each.name.startswith("executor-")]
        return states == ["up"] * executors

    limit_s = _SCALE_S + folder.wanted().drain_timeout_s
    if not _wait(is_done, limit_s):
        raise CarawayError(
            f"there are not {executors} executors after {limit_s:g} s; "
            f"`caraway cluster status --data-dir {data_dir}` shows what they do"
        )
    print(f"The cluster has {_count(executors)}")
    return 0


def status(data_dir: Path) -> ClusterStatus | None:
    """What runs there, as its keeper sees it."""
    return ClusterFolder(data_dir).status()


def down(data_dir: Path) -> int:
    """End the cluster of the directory, in order; returns when nothing of it runs.

    Raises:
        CarawayError: no cluster runs there.
    """
    folder = ClusterFolder(data_dir)
    keeper = _require(folder).keeper_pid
    limit_s = _DOWN_S + folder.wanted().drain_timeout_s
    os.kill(keeper, signal.SIGTERM)
    if not _wait(lambda: not folder.has_keeper, limit_s):
        # Everything that it started is tied to it, and ends with it.
        os.kill(keeper, signal.SIGKILL)
        raise CarawayError(f"the cluster did not end within {limit_s:g} s; it was killed")
    print("The cluster has ended")
    return 0


def _detached(options: ClusterOptions, folder: ClusterFolder) -> int:
    for stale in ("ready", "failure"):
        (folder.path / stale).unlink(missing_ok=True)
    with folder.held():
        folder.want(plans.plan(options))
    program = "import sys; from caraway_cluster import command; sys.exit(command.keep(sys.argv[1]))"
    with folder.log("keeper").open("a") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-c", program, str(folder.path)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    print(f"Starting a cluster of {_count(options.executors)}", flush=True)
    is_ready = (folder.path / "ready").exists
    if not _wait(lambda: is_ready() or keeper.poll() is not None, _UP_S) or not is_ready():
        return _failed(keeper, folder)
    told = folder.status()
    assert told is not None
    _say(_banner(folder, told))
    return 0


def _failed(keeper: "subprocess.Popen[bytes]", folder: ClusterFolder) -> int:
    if keeper.poll() is None:
        keeper.kill()
        keeper.wait()
    file = folder.path / "failure"
    reason = file.read_text() if file.exists() else f"see {folder.log('keeper')}"
    raise CarawayError(f"the cluster does not come up: {reason}")


def _mark_ready(folder: ClusterFolder) -> None:
    (folder.path / "ready").touch()


def _require(folder: ClusterFolder) -> ClusterStatus:
    # A keeper that has just begun has told nothing yet.
    _wait(lambda: not folder.has_keeper or folder.status() is not None, 5)
    found = folder.status()
    if found is None:
        raise CarawayError(
            f"no cluster runs in '{folder.path}'; start one with `caraway cluster up`, or name "
            "its directory with --data-dir DIR"
        )
    return found


def _require_none(folder: ClusterFolder) -> None:
    if folder.has_keeper:
        with folder.held():
            return


def _check_count(executors: int) -> None:
    if not 0 <= executors <= plans.MOST_EXECUTORS:
        raise CarawayError(
            f"a cluster on one machine has 0 to {plans.MOST_EXECUTORS} executors, not {executors}"
        )


def _banner(folder: ClusterFolder, told: ClusterStatus) -> str:
    names = {"http": "HTTP", "flight": "Flight", "metrics": "metrics"}
    lines = [f"  {names.get(name, name):<8} {at}" for name, at in told.endpoints.items()]
    return "\n".join(
        [
            f"\nThe cluster is ready: {_count(told.executors)}",
            *lines,
            f"  logs     {folder.path / 'logs'}",
            f"\nState:  caraway cluster status --data-dir {folder.path}",
            f"End:    caraway cluster down --data-dir {folder.path}",
        ]
    )


def _count(executors: int) -> str:
    return f"{executors} executor{'' if executors == 1 else 's'}"


def _say(text: str) -> None:
    print(text, flush=True)


def _wait(holds: Callable[[], bool], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_CHECK_S)
    return True
