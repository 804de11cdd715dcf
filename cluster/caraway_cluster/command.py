"""`caraway cluster up`, `scale`, `status` and `down`, after option parsing."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from caraway_cluster import plan as plans
from caraway_cluster.folder import ClusterFolder, LocalClusterStatus
from caraway_cluster.supervisor import ClusterSupervisor
from caraway_core import manifest, ray_nodes
from caraway_core.errors import CarawayError
from caraway_core.process import logs
from caraway_core.settings import ClusterOptions

_CHECK_S = 0.1
_UP_S = 270.0
_SCALE_S = 180.0
_DOWN_S = 60.0


def up(options: ClusterOptions) -> int:
    """Start a cluster and run it until SIGTERM or SIGINT, or detach its supervisor.

    Raises:
        CarawayError: the cluster did not start. Nothing is left running.
    """
    ray_nodes.require()
    manifest.load(options.manifest)
    _check_count(options.executors)
    folder = ClusterFolder(options.data_dir)
    _require_unlocked(folder)
    if options.detach:
        return _start_detached(options, folder)
    print(f"Starting a cluster with {_count(options.executors)}; press Ctrl-C to stop", flush=True)
    with folder.lock():
        folder.write_plan(plans.make_plan(options))
        # The terminal shows the state of each process; log lines go to the file.
        with folder.log("supervisor").open("a") as log:
            logs.configure(options.log_format, stream=log)
            supervisor = ClusterSupervisor(folder, _print)
            asyncio.run(supervisor.run_cluster(lambda *found: _print(_banner(folder, *found))))
    print("The cluster has stopped")
    return 0


def supervise(path: str) -> int:
    """Supervise the cluster whose plan is in the directory; the detached process runs this."""
    folder = ClusterFolder(Path(path))
    with folder.lock():
        logs.configure("text")
        supervisor = ClusterSupervisor(folder, lambda _: None)
        try:
            asyncio.run(supervisor.run_cluster(lambda _, missing: folder.mark_ready(missing)))
        except CarawayError as exc:
            (folder.path / "failure").write_text(exc.message)
            return 1
    return 0


def scale(data_dir: Path, executors: int) -> int:
    """Change the number of executors and wait until they are up.

    Raises:
        CarawayError: no cluster is running there, or it did not scale in time.
    """
    _check_count(executors)
    folder = ClusterFolder(data_dir)
    _require(folder)
    folder.write_plan(folder.read_plan().scaled(executors))

    def is_done() -> bool:
        status = _require(folder)
        states = [each.state for each in status.processes if each.name.startswith("executor-")]
        return states == ["up"] * executors

    limit_s = _SCALE_S + folder.read_plan().drain_timeout_s
    if not _wait(is_done, limit_s):
        raise CarawayError(
            f"the cluster did not scale to {_count(executors)} within {limit_s:g} s; "
            f"`caraway cluster status --data-dir {data_dir}` shows its processes"
        )
    print(f"The cluster has {_count(executors)}")
    return 0


def status(data_dir: Path) -> LocalClusterStatus | None:
    """Return the status of the cluster in the directory; None if none is running."""
    return ClusterFolder(data_dir).status()


def down(data_dir: Path) -> int:
    """Stop the cluster in the directory and wait until all its processes have exited.

    Raises:
        CarawayError: no cluster is running there, or it had to be killed.
    """
    folder = ClusterFolder(data_dir)
    pid = _require(folder).supervisor_pid
    limit_s = _DOWN_S + folder.read_plan().drain_timeout_s
    os.kill(pid, signal.SIGTERM)
    if not _wait(lambda: not folder.is_locked, limit_s):
        # The kernel kills the processes that it started along with it.
        os.kill(pid, signal.SIGKILL)
        raise CarawayError(f"the cluster did not stop within {limit_s:g} s and was killed")
    print("The cluster has stopped")
    return 0


def _start_detached(options: ClusterOptions, folder: ClusterFolder) -> int:
    for stale in ("ready", "failure"):
        (folder.path / stale).unlink(missing_ok=True)
    with folder.lock():
        folder.write_plan(plans.make_plan(options))
    program = (
        "import sys; from caraway_cluster import command; sys.exit(command.supervise(sys.argv[1]))"
    )
    with folder.log("supervisor").open("a") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-c", program, str(folder.path)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    print(f"Starting a cluster with {_count(options.executors)}", flush=True)

    def is_ready() -> bool:
        return folder.missing() is not None

    if not _wait(lambda: is_ready() or supervisor.poll() is not None, _UP_S) or not is_ready():
        raise _start_error(supervisor, folder)
    status = folder.status()
    assert status is not None
    _print(_banner(folder, status, folder.missing() or ""))
    return 0


def _start_error(supervisor: "subprocess.Popen[bytes]", folder: ClusterFolder) -> CarawayError:
    if supervisor.poll() is None:
        supervisor.kill()
        supervisor.wait()
    file = folder.path / "failure"
    reason = file.read_text() if file.exists() else f"see {folder.log('supervisor')}"
    return CarawayError(f"the cluster did not start: {reason}")


def _require(folder: ClusterFolder) -> LocalClusterStatus:
    # A supervisor that has just started has not written its status yet.
    _wait(lambda: not folder.is_locked or folder.status() is not None, 5)
    local_cluster_status = folder.status()
    if local_cluster_status is None:
        raise CarawayError(
            f"no cluster is running in '{folder.path}'; start one with `caraway cluster up`, or "
            "choose its directory with --data-dir DIR"
        )
    return local_cluster_status


def _require_unlocked(folder: ClusterFolder) -> None:
    if folder.is_locked:
        # Taking the lock raises the error that says what to do.
        with folder.lock():
            return


def _check_count(executors: int) -> None:
    if not 0 <= executors <= plans.MAX_EXECUTORS:
        raise CarawayError(
            f"the number of executors must be between 0 and {plans.MAX_EXECUTORS}, not {executors}"
        )


def _banner(folder: ClusterFolder, status: LocalClusterStatus, missing: str) -> str:
    names = {"http": "HTTP", "flight": "Flight", "metrics": "metrics"}
    endpoints = status.endpoints.items()
    lines = [f"  {names.get(name, name):<8} {address}" for name, address in endpoints]
    return "\n".join(
        [
            f"\nThe cluster is ready: {_count(status.executors)}",
            *([f"  not ready: {missing}"] if missing else []),
            *lines,
            f"  logs     {folder.path / 'logs'}",
            f"\nStatus:  caraway cluster status --data-dir {folder.path}",
            f"Stop:    caraway cluster down --data-dir {folder.path}",
        ]
    )


def _count(executors: int) -> str:
    return f"{executors} executor{'' if executors == 1 else 's'}"


def _print(text: str) -> None:
    print(text, flush=True)


def _wait(condition: Callable[[], bool], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_CHECK_S)
    return True
