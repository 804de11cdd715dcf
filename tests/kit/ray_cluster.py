"""Runs a real cluster over Ray, and checks that no process of it is left."""

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from caraway_core import ray_nodes
from caraway_core.ray_nodes import node
from caraway_core.settings import Address
from tests.kit.deadlines import until

MARK = "CARAWAY_TEST_CLUSTER"
CARAWAY = ("-m", "caraway")
ACTOR = "ray::ExecutorActor"
START_S = 200
_STOP_S = 180
_STORE = ("--object-store-memory", "100MiB")


@dataclass(slots=True)
class Process:
    """A `caraway` command that reports when it is up."""

    popen: subprocess.Popen[bytes]
    log: Path
    pipe: int
    facts: dict[str, str] = field(default_factory=dict)

    def wait_up(self) -> "Process":
        readable, _, _ = select.select([self.pipe], [], [], START_S)
        with os.fdopen(self.pipe) as pipe:
            line = pipe.readline() if readable else ""
        assert line, f"it did not come up:\n{self.log.read_text()}"
        self.facts = json.loads(line)
        return self

    def terminate(self) -> int:
        self.popen.terminate()
        return self.popen.wait(_STOP_S)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait(_STOP_S)


@dataclass(frozen=True, slots=True)
class Host:
    """Where a process runs, if not simply on this machine."""

    within: Sequence[str] = ()
    """The words before its command."""
    environ: Mapping[str, str] = field(default_factory=dict)


def start(
    folder: Path,
    mark: str,
    name: str,
    *command: str,
    program: Sequence[str] = CARAWAY,
    place: str = "--data-dir",
    host: "Host | None" = None,
) -> Process:
    """Start a command with a folder (set by the flag `place`), a log and a ready pipe."""
    host = host or Host()
    reader, writer = os.pipe()
    log = folder / f"{name}.log"
    arguments = [
        *host.within, sys.executable, *program, *command, place, str(folder / name),
        "--token-file", str(folder / "token"), "--ready-fd", str(writer),
    ]  # fmt: skip
    with log.open("ab") as out:
        popen = subprocess.Popen(
            arguments, pass_fds=(writer,), stdout=out, stderr=out, stdin=subprocess.DEVNULL,
            start_new_session=True, env={**os.environ, **host.environ, MARK: mark},
        )  # fmt: skip
    os.close(writer)
    return Process(popen, log, reader)


@dataclass(slots=True)
class RayCluster:
    """A head, executors `e1`, `e2`, ..., and schedulers. Tests that join a cluster use the node of
    e1, and harm only other nodes.
    """

    folder: Path
    mark: str
    network: str
    head_address: Address
    state: str | None = None
    """The URL of a Redis, if there is one."""
    memory: str = "512MiB"
    """The memory of each executor for statements."""
    head_state: str | None = None
    """The URL for the head, because Ray supports no Unix sockets."""
    executor_flags: Sequence[str] = ()
    """Further flags of executors; `{ip}` is the address of each."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """The hosts of processes that have one of their own, with the addresses of `network`."""
    head: Process = field(init=False)
    executors: dict[str, Process] = field(default_factory=dict)
    schedulers: dict[str, Process] = field(default_factory=dict)

    @property
    def processes(self) -> list[Process]:
        return [*self.executors.values(), *self.schedulers.values(), self.head]

    @property
    def token(self) -> Path:
        return self.folder / "token"

    def node_ip(self, executor: str) -> str:
        return f"{self.network}.{10 + int(executor[1:])}"

    def begin_head(self) -> Process:
        """Start the head, or a replacement, without waiting for it."""
        stated = ["--state", self.head_state] if self.head_state else []
        place = ["--address", str(self.head_address), *stated]
        self.head = start(
            self.folder, self.mark, "head", "head", *place, host=self.hosts.get("head")
        )
        return self.head

    def begin(self, executor: str, program: Sequence[str] = CARAWAY) -> Process:
        """Start an executor, without waiting for it."""
        process = start(
            self.folder, self.mark, executor, "executor", "--head", str(self.head_address),
            "--node-ip", self.node_ip(executor), "--id", executor, "--cores", "1",
            "--memory", self.memory, *_STORE, "--metrics", "127.0.0.1:0",
            *(flag.format(ip=self.node_ip(executor)) for flag in self.executor_flags),
            program=program, host=self.hosts.get(executor),
        )  # fmt: skip
        self.executors[executor] = process
        return process

    def begin_scheduler(self, name: str, manifest: Path, *flags: str) -> Process:
        """Start a scheduler `s1`, `s2`, ..., without waiting for it."""
        node_ip = f"{self.network}.{100 + int(name[1:])}"
        place = node_ip if name in self.hosts else "127.0.0.1"
        process = start(
            self.folder, self.mark, name, "scheduler", str(manifest), "--head",
            str(self.head_address), "--node-ip", node_ip, "--id", name, *_STORE, "--http",
            f"{place}:0", "--metrics", f"{place}:0", "--flight", f"{place}:0", *self._stated(),
            *flags, host=self.hosts.get(name),
        )  # fmt: skip
        self.schedulers[name] = process
        return process

    def _stated(self) -> list[str]:
        return ["--state", self.state] if self.state else []

    def actor_pid(self, executor: str) -> int:
        """Return the process of the executor's actor, when there is one."""
        executor_pid = self.executors[executor].popen.pid

        def look() -> int:
            titles = descendants(executor_pid).items()
            return next((pid for pid, title in titles if title.startswith(ACTOR)), 0)

        return until(look, f"{executor} has an actor", 180)

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Join the cluster with this process; fleets in the block reach the executors."""
        # Imported here because the import takes a second, which tests without a cluster save.
        from caraway_scheduler.dispatch.fleets.joining import RayDriver
        from caraway_scheduler.dispatch.fleets.ray_fleet import RayFleet

        variables = ray_nodes.environment(self.token)
        token = ray_nodes.read_token(self.token)
        fleet = RayFleet(token, RayDriver(self.head_address, self.node_ip("e1"), variables))
        asyncio.run(fleet.join())
        try:
            yield
        finally:
            asyncio.run(fleet.aclose())

    def raylet_pid(self, executor: str) -> int:
        within = descendants(self.executors[executor].popen.pid)
        return next(pid for pid, title in within.items() if "/raylet/raylet" in title)


@contextlib.contextmanager
def ray_cluster(
    folder: Path,
    executors: int = 2,
    state: str | None = None,
    memory: str = "512MiB",
    head_state: str | None = "",
    executor_flags: Sequence[str] = (),
    hosts: Mapping[str, Host] | None = None,
    network: str = "",
) -> Iterator[RayCluster]:
    """Start a cluster; the block begins when the head is up and every executor has joined.

    The head keeps its state with the schedulers' state, unless `head_state` says otherwise.
    """
    mark = uuid.uuid4().hex
    network = network or f"127.200.{1 + os.getpid() % 250}"
    address = Address(f"{network}.1", 20_000 + os.getpid() % 12_000)
    ray_nodes.make_token(folder / "token")
    of_head = state if head_state == "" else head_state
    cluster = RayCluster(
        folder, mark, network, address, state, memory, of_head, executor_flags, hosts or {}
    )
    try:
        cluster.begin_head().wait_up()
        for process in [cluster.begin(f"e{number}") for number in range(1, executors + 1)]:
            process.wait_up()
        yield cluster
    finally:
        for process in cluster.processes:
            if process.popen.poll() is None:
                process.popen.send_signal(signal.SIGCONT)
                process.popen.terminate()
        for process in cluster.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.popen.wait(_STOP_S)
        assert_nothing_left(mark)
        close_sessions(folder)


def close_sessions(folder: Path) -> None:
    """Remove what a killed process left behind."""
    for note in folder.glob("*/ray"):
        node.close_session(note)


def assert_nothing_left(mark: str) -> None:
    """Check that all descendants of the cluster's processes ended; kill those that did not."""
    try:
        until(lambda: not marked(mark), "no process of the cluster is left")
    finally:
        for pid in marked(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def marked(mark: str) -> Mapping[int, str]:
    """Return the processes with the mark of a cluster, which every child inherits."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(folder.name)] = title
    return found


def descendants(pid: int) -> Mapping[int, str]:
    """Return the descendants of a process, with their command lines."""
    children: dict[int, list[int]] = {}
    titles = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
            titles[int(folder.name)] = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            )
    found: dict[int, str] = {}
    waiting = list(children.get(pid, ()))
    while waiting:
        each = waiting.pop()
        found[each] = titles.get(each, "")
        waiting += children.get(each, ())
    return found
