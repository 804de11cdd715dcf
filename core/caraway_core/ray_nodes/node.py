"""Runs a Ray node as a child process, and cleans up after it."""

import asyncio
import contextlib
import logging
import os
import re
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path
from typing import Self

from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError
from caraway_core.process import exiting
from caraway_core.ray_nodes import options as node_options
from caraway_core.ray_nodes import tied
from caraway_core.ray_nodes.options import NodeOptions
from caraway_core.settings import ENGINE_VARIABLES, Address

logger = logging.getLogger(__name__)
_IS_UP = b"Ray runtime started."
_START_S = 90.0
_STOP_S = 10.0
_GROUP_CHECK_S = 0.05
_LOOK_S = 0.3
_TOLD_LENGTH = 400
_READ_BYTES = 64 * 1024
_TOO_SLOW = "timed out during startup"
"""Ray's message for a raylet that has not joined within 30 s; that time is not configurable."""
_CAUSE = re.compile(r"error|failed|cannot", re.IGNORECASE)


class NodeFailedError(CarawayError):
    """A Ray node did not start."""


class RayNode:
    """A running node; its processes end with it, and with the process that started it."""

    def __init__(
        self, process: asyncio.subprocess.Process, folder: Path, agent_port: socket.socket
    ) -> None:
        self._process = process
        self._folder = folder
        self._agent_port = agent_port
        self._is_up = asyncio.Event()
        self._tasks = tasks.Tasks()
        self._copying = self._tasks.spawn(self._copy(), "copy the output of a Ray node")

    @classmethod
    async def start(cls, options: NodeOptions) -> Self:
        """Start a node and wait until it has joined its cluster.

        A node that joins is started when its head listens: Ray looks for it more and more rarely. A
        node that Ray gave up on as too slow is restarted while there is time.

        Raises:
            NodeFailedError: the node ended, or was not up in time; the message has its last output.
        """
        if options.joins:
            await _until_head_listens(options.head)
        deadline = time.monotonic() + _START_S
        while True:
            node = await cls._begin(options)
            try:
                await node._wait_until_up(deadline)
                return node
            except BaseException as exc:
                await node.stop(at_once=True)
                is_slow = isinstance(exc, NodeFailedError) and _TOO_SLOW in exc.message
                if not is_slow or time.monotonic() > deadline:
                    raise
                logger.warning("Ray node starts again", extra={"cause": str(exc)})

    @classmethod
    async def _begin(cls, options: NodeOptions) -> Self:
        session = open_session(options.folder)
        agent_port = _hold_port()
        process = await asyncio.create_subprocess_exec(
            *tied.guarded(node_options.command(options, session, agent_port.getsockname()[1])),
            env={**ENGINE_VARIABLES, **os.environ, **node_options.start_environment(options)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # A signal to our process group, such as Ctrl-C, must not reach the node; we stop it in
            # order.
            start_new_session=True,
        )
        return cls(process, options.folder, agent_port)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> Path:
        """The file with the output of the node."""
        return self._folder / "ray.log"

    async def wait(self) -> int:
        """Wait until the node ends by itself."""
        return await self._process.wait()

    async def stop(self, *, at_once: bool = False) -> None:
        """Stop the node and all processes that it started."""
        if not at_once and self._process.returncode is None:
            self._process.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_S):
                    await self._process.wait()
        _kill_group(self.pid)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await self._group_end()
        self._copying.cancel()
        self._agent_port.close()
        await asyncio.to_thread(close_session, self._folder)

    async def _wait_until_up(self, deadline: float) -> None:
        up = tasks.begin(self._is_up.wait())
        ended = tasks.begin(self._process.wait())
        try:
            left_s = max(0.0, deadline - time.monotonic())
            await asyncio.wait((up, ended), timeout=left_s, return_when="FIRST_COMPLETED")
        finally:
            up.cancel()
            ended.cancel()
        if not self._is_up.is_set():
            how = "ended" if self._process.returncode is not None else "is not up"
            raise NodeFailedError(
                f"the Ray node {how} after it was started: {await self._told()} (see its "
                f"output in {self.output})"
            )

    async def _told(self) -> str:
        if self._process.returncode is not None:
            await asyncio.wait((self._copying,), timeout=1)
        lines = self.output.read_text(errors="replace").strip().splitlines()
        # The error is often followed by a stack of native code, which is of no use.
        causes = [line for line in lines if _CAUSE.search(line)] or lines
        return " | ".join(line[:_TOLD_LENGTH] for line in causes[-1:]) or "it printed nothing"

    async def _copy(self) -> None:
        """Copy the output to its end even if writing fails: a full pipe blocks the node."""
        assert self._process.stdout is not None
        last, failure = b"", None
        with self.output.open("wb", buffering=0) as file:
            while part := await self._process.stdout.read(_READ_BYTES):
                last = last[-len(_IS_UP) :] + part
                if _IS_UP in last:
                    self._is_up.set()
                try:
                    file.write(part)
                except OSError as exc:
                    failure = exc
        if failure is not None:
            raise failure

    async def _group_end(self) -> None:
        await self._process.wait()
        while _is_group_alive(self.pid):  # noqa: ASYNC110 -- a process group sends no event
            await asyncio.sleep(_GROUP_CHECK_S)


async def _until_head_listens(head: Address) -> None:
    deadline = time.monotonic() + _START_S
    while not await asyncio.to_thread(exiting.listens, head):
        if time.monotonic() > deadline:
            raise NodeFailedError(f"the head at {head} cannot be reached; does `caraway head` run?")
        await asyncio.sleep(_LOOK_S)


def _hold_port() -> socket.socket:
    """Reserve a free port; only processes that ask to share it can use it.

    Ray's agent asks to share it. The kernel lets the agent listen there, because this socket itself
    does not.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("", 0))
    return held


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _is_group_alive(group: int) -> bool:
    """Return whether a process of the group is alive; zombies do not count."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = status.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                return True
    return False


_SOCKET_PATH_LIMIT = 107
_SESSION = len("/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store.1")
_NOTE = "session-folder"


def open_session(folder: Path) -> Path:
    """Create a session folder in the given folder, or in the temporary folder if that is too long.

    A leftover of an earlier process is removed first.
    """
    close_session(folder)
    folder.mkdir(parents=True, exist_ok=True)
    session = folder.absolute() / "s"
    if len(os.fsencode(session)) + _SESSION > _SOCKET_PATH_LIMIT:
        session = Path(tempfile.mkdtemp(prefix="caraway-", dir=_short_folder()))
    (folder / _NOTE).write_text(str(session))
    session.mkdir(exist_ok=True, mode=0o700)
    return session


def close_session(folder: Path) -> None:
    """Remove the session folder that was created for this folder."""
    note = folder / _NOTE
    if note.exists():
        shutil.rmtree(note.read_text(), ignore_errors=True)
        note.unlink(missing_ok=True)


def _short_folder() -> str:
    system = tempfile.gettempdir()
    room = _SOCKET_PATH_LIMIT - _SESSION - len("/caraway-12345678")
    return system if len(os.fsencode(system)) <= room else "/tmp"
