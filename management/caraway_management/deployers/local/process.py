"""Starts, finds, watches and ends the runtime of one folder."""

import contextlib
import json
import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from caraway_management.deployers.local import launch
from caraway_management.deployers.local.folder import Plan, ProjectFolder

HOST = "127.0.0.1"
_ANSWER_S = 2.0
_LOCK_FD = 3
_PASSED = frozenset(
    {
        "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY",
        "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "VIRTUAL_ENV",
        "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "COVERAGE_PROCESS_START",
    }
)  # fmt: skip
"""The variables of the service that runtimes get. It may have secrets of its own in others."""


def start(
    folder: ProjectFolder,
    plan: Plan,
    lock: int,
    program: Sequence[str],
    *,
    keeps_environment: bool,
) -> int:
    """Start the runtime, which holds the lock from now on; return its process id."""
    folder.process_file.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        folder.log.replace(folder.log.with_suffix(".last.log"))
    launched = [
        sys.executable, "-I", "-S", launch.__file__, str(folder.process_file),
        str(plan.deployment_id), *program
    ]  # fmt: skip
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        # Before the others: they must not close it.
        (os.POSIX_SPAWN_DUP2, lock, _LOCK_FD),
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(folder.log), append, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    environment = _environment(folder.path, os.environ, keeps_environment=keeps_environment)
    # Not `subprocess`, which ends or waits for its children: runtimes outlive this process.
    return os.posix_spawn(
        sys.executable, launched, environment, file_actions=actions,
        setsigmask=(), setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGPIPE),
    )  # fmt: skip


def reap(pid: int) -> int | None:
    """Return the exit code of a process that this one has started; None if it runs, or others."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if ended else None


def send(folder: ProjectFolder, number: signal.Signals) -> bool:
    """Send a signal to the runtime of a folder, whose lock is held; to all of it for SIGKILL.

    Returns False if the runtime has ended, or has not said who it is yet.
    """
    process = folder.read_process()
    if process is None:
        return False
    try:
        if number is signal.SIGKILL:
            os.killpg(process.id, number)
        else:
            os.kill(process.id, number)
    except ProcessLookupError:
        return False
    return True


def exists(pid: int) -> bool:
    """Return whether there is a process of this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def free_ports(taken: frozenset[int]) -> tuple[int, ...]:
    """Return free ports that no other project has."""
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        while len(found) < 3:
            probe = stack.enter_context(socket.socket())
            probe.bind((HOST, 0))
            port = probe.getsockname()[1]
            if port not in taken:
                found.append(port)
    return tuple(found)


def are_free(ports: tuple[int, ...]) -> bool:
    """Return whether the ports are free."""
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                return False
    return True


def is_ready(metrics_port: int) -> bool:
    """Ask a runtime whether it is ready. Blocks."""
    # The metrics port needs no API key and never uses TLS.
    try:
        url = f"http://{HOST}:{metrics_port}/v1/ready"
        with _OPENER.open(url, timeout=_ANSWER_S) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


# Without the proxy of the environment.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def command(folder: ProjectFolder, plan: Plan) -> list[str]:
    """Return the command line of a runtime."""
    http, flight, metrics = plan.ports
    addresses = [
        "--http", f"{HOST}:{http}", "--flight", f"{HOST}:{flight}",
        "--metrics", f"{HOST}:{metrics}", "--data-dir", str(folder.data),
        "--limits-file", str(folder.limits),
    ]  # fmt: skip
    run = [sys.executable, "-P", "-m", "caraway"]
    if plan.executors:
        return [
            *run, "cluster", "up", str(folder.manifest), *addresses,
            "--executors", str(plan.executors),
        ]  # fmt: skip
    return [*run, "run", str(folder.manifest), *addresses]


def _environment(
    folder: Path, environ: Mapping[str, str], *, keeps_environment: bool
) -> dict[str, str]:
    if keeps_environment:
        return dict(environ)
    passed = {name: value for name, value in environ.items() if name in _PASSED}
    # Home directories hold credentials, of cloud providers for example.
    return {**passed, "HOME": str(folder)}


def explain(folder: ProjectFolder, hidden: Mapping[str, str], most: int = 5) -> str:
    """Return the runtime's own error: the last lines of its log, without paths and secrets."""
    lines = [
        line.strip() for line in folder.last_lines(200)
        if line.strip() and not line.startswith((" ", "Traceback"))
    ]  # fmt: skip
    text = "\n".join(lines[-most:]) or "the runtime ended without a message"
    for path in (str(folder.path), sys.prefix, sys.base_prefix, str(Path.cwd())):
        text = text.replace(f"{path}/", "").replace(path, "")
    for name, value in hidden.items():
        if len(value) >= 4:
            text = text.replace(value, f"<{name}>")
            text = text.replace(json.dumps(value)[1:-1], f"<{name}>")
    return text[:2_000]
