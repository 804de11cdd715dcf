"""Keeps a cluster on one machine, as the kubelet does on many: what is wanted is what runs."""

import asyncio
import logging
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from caraway_cluster import plan as plans
from caraway_cluster.child import Child
from caraway_cluster.folder import ClusterFolder, ClusterStatus
from caraway_cluster.plan import ClusterPlan
from caraway_core import ray_nodes, tasks
from caraway_core.errors import CarawayError

logger = logging.getLogger(__name__)
_CHECK_S = 0.25
_READY_S = 240.0
_START_TRIES = 3
_ANSWER_S = 2.0


class Keeper:
    """Runs until SIGTERM or SIGINT; `announce` is told each step, for a person to read."""

    def __init__(self, folder: ClusterFolder, announce: Callable[[str], None]) -> None:
        self._folder = folder
        self._announce = announce
        self._wanted = folder.wanted()
        self._children: dict[str, Child] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._tasks = tasks.Tasks()
        self._said: dict[str, str] = {}
        self._stopping = asyncio.Event()
        self._started = time.monotonic()

    async def run(self, on_ready: Callable[[ClusterStatus], None]) -> None:
        """Start everything, keep it, and end it all in order.

        Raises:
            CarawayError: it does not come up.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        ray_nodes.make_token(self._folder.token)
        try:
            if await self._come_up():
                on_ready(self.status)
                await self._follow()
        finally:
            await self._end()

    @property
    def status(self) -> ClusterStatus:
        children = [child.status for child in self._children.values()]
        return ClusterStatus(os.getpid(), self._wanted.executors, children)

    async def _come_up(self) -> bool:
        """Start what is wanted; False if it was told to stop meanwhile."""
        deadline = asyncio.get_running_loop().time() + _READY_S
        self._add("head")
        if not await self._until(lambda: self._children["head"].is_up.is_set(), deadline):
            return False
        for name in plans.members(self._wanted):
            if name not in self._children:
                self._add(name)
        if not await self._until(self._are_all_up, deadline):
            return False
        while not await asyncio.to_thread(self._is_ready):
            if not await self._until(None, deadline):
                return False
        return True

    async def _until(self, holds: Callable[[], bool] | None, deadline: float) -> bool:
        """Wait until it holds, or for one check without one; False if told to stop.

        Raises:
            CarawayError: the deadline passed, or a process ends again and again.
        """
        while holds is None or not holds():
            for child in self._children.values():
                if child.starts > _START_TRIES:
                    raise self._failure(child, f"ended {_START_TRIES} times")
            if asyncio.get_running_loop().time() > deadline:
                late = [each for each in self._children.values() if not each.is_up.is_set()]
                late = late or list(self._children.values())
                raise self._failure(late[0], f"is not ready after {_READY_S:g} s")
            if await self._pause():
                return False
            if holds is None:
                return True
        return True

    def _failure(self, child: Child, what: str) -> CarawayError:
        log = self._folder.log(child.member.name)
        tail = " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:])
        return CarawayError(f"{child.member.name} {what}: {tail or 'it said nothing'} (see {log})")

    def _are_all_up(self) -> bool:
        return all(child.is_up.is_set() for child in self._children.values())

    def _is_ready(self) -> bool:
        # The metrics port asks for no key, and has no certificate of its own.
        address = self.status.endpoints.get("metrics")
        url = f"http://{address}/v1/ready?min_ready_executors={self._wanted.executors}"
        try:
            with urllib.request.urlopen(url, timeout=_ANSWER_S) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    async def _follow(self) -> None:
        """Do what the plan in the data directory says, until told to stop."""
        while not await self._pause():
            wanted = self._folder.wanted().executors
            if wanted != self._wanted.executors:
                self._scale(self._wanted.scaled(wanted))

    def _scale(self, wanted: ClusterPlan) -> None:
        logger.info("scaling", extra={"from": self._wanted.executors, "to": wanted.executors})
        self._wanted = wanted
        members = plans.members(wanted)
        for name in members:
            if name not in self._children:
                self._add(name)
        for name in [name for name in self._children if name not in members]:
            self._remove(name)
        self._tell()

    def _add(self, name: str) -> None:
        member = plans.members(self._wanted)[name]
        child = Child(self._wanted, member, self._folder, self._tell)
        before = self._keeping.get(name)
        self._children[name] = child
        self._keeping[name] = self._tasks.spawn(
            _after(before, child), "keep a process", self._note, child=name
        )

    def _note(self, _failure: BaseException) -> None:
        logger.error("a process is kept no longer; everything ends")
        self._stopping.set()

    def _remove(self, name: str) -> None:
        child, keeping = self._children[name], self._keeping[name]

        async def leave() -> None:
            await child.stop()
            await keeping
            if self._children.get(name) is child:
                del self._children[name]
            self._tell()

        self._keeping[name] = self._tasks.spawn(leave(), "end a process", child=name)

    async def _end(self) -> None:
        """Executors first, which drain; the head last, without which nothing can leave well."""
        for role in ("executor", "scheduler", "head"):
            leaving = [each for each in self._children.values() if each.member.role == role]
            await asyncio.gather(*(child.stop() for child in leaving))
        await asyncio.gather(*self._keeping.values(), return_exceptions=True)

    async def _pause(self) -> bool:
        """Wait a moment; True if told to stop."""
        stopping = tasks.begin(self._stopping.wait())
        await asyncio.wait((stopping,), timeout=_CHECK_S)
        stopping.cancel()
        return self._stopping.is_set()

    def _tell(self) -> None:
        status = self.status
        self._folder.tell(status)
        for each in status.processes:
            if self._said.get(each.name) != each.state:
                self._said[each.name] = each.state
                took = time.monotonic() - self._started
                self._announce(f"  {each.name:<12} {each.state:<9} {took:5.1f} s")


async def _after(before: asyncio.Task[None] | None, child: Child) -> None:
    """Keep a child once the one before it, of the same name, has ended."""
    if before is not None:
        await asyncio.wait((before,))
    await child.keep()
