"""Joins this process to Ray as a driver, leaves, joins again, and finds the actors of executors."""

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import ray
from ray import exceptions
from ray._private import auto_init_hook
from ray._raylet import Config  # type: ignore[attr-defined]  # compiled

from caraway_core import ray_nodes
from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.settings import Address
from caraway_scheduler.dispatch.fleets.waiting import in_thread

_JOIN_S = 30.0
_LEAVE_S = 5.0


class RayDriver:
    """The connection of this process to Ray, through the node at an address of this host."""

    def __init__(self, head: Address, node_ip: str | None, variables: Mapping[str, str]) -> None:
        self.is_joined = False
        self._head = head
        self._arguments = ray_nodes.init_arguments(head, node_ip)
        os.environ.update(variables)
        # Ray has already read its variables at import.
        Config.initialize("")
        # Ray would start a cluster of its own for a call while this process is in none.
        auto_init_hook.enable_auto_connect = False

    async def join(self) -> None:
        """Join through the node, whose process must be running.

        Raises:
            CarawayError: the cluster cannot be joined.
        """
        try:
            # In its own thread, because Ray takes over SIGTERM in the main thread.
            async with asyncio.timeout(_JOIN_S):
                await in_thread(partial(ray.init, **self._arguments), "ray")
        except (exceptions.RayError, OSError, RuntimeError, ValueError) as exc:
            await self.leave()  # It may have joined in part.
            raise CarawayError(
                f"cannot join the Ray cluster at {self._head}: {exc or 'no answer'}; is "
                "`caraway head` running, and is the token file the same?"
            ) from exc
        self.is_joined = True

    async def leave(self, within_s: float = _LEAVE_S) -> None:
        """Disconnect from Ray.

        Raises:
            CarawayError: Ray does not disconnect in time; this process cannot join again.
        """
        self.is_joined = False
        try:
            async with asyncio.timeout(within_s):
                await in_thread(ray.shutdown, "ray")
        except TimeoutError:
            raise CarawayError(
                f"Ray cannot disconnect from the cluster within {within_s:g} s; restart this "
                "scheduler"
            ) from None


def find(known: set[ExecutorId]) -> Mapping[ExecutorId, Any]:
    """Return the actors of executors that are not known yet; blocks."""
    found = {}
    for name in ray.util.list_named_actors():
        executor_id = ray_nodes.executor_of(name)
        if executor_id is not None and executor_id not in known:
            try:
                found[executor_id] = ray.get_actor(name)
            except ValueError:
                continue  # It ended after it was listed.
    return found
