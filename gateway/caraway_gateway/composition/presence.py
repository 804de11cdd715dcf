"""Keeps a scheduler in its Ray cluster: starts its node, and another one when that ended."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.errors import CarawayError
from caraway_core.process.exiting import listens
from caraway_core.ray_nodes import NodeOptions, RayNode
from caraway_core.settings import Address

logger = logging.getLogger(__name__)
_DELAYS = Delays(1.0, 5.0)
_FIRST_ATTEMPTS = 10
_AWAY_S = 5.0
_AWAY_REACHABLE_S = 1.0
"""The time to look for the head: without and with executors that are reached without it."""
_LOOK_S = 0.5


Asked = Callable[[], Awaitable[bool]]


class Joined(Protocol):
    """The part of a fleet that connects to Ray."""

    async def leave(self) -> None:
        """Leave Ray."""

    async def join(self) -> None:
        """Join Ray through the node of this host."""


class Presence:
    """The Ray node of a scheduler.

    While there is none, the fleet reaches executors by their stored addresses.
    """

    def __init__(
        self, options: NodeOptions, fleet: Joined, listens: Callable[[Address], bool] = listens
    ) -> None:
        self._options = options
        self._fleet = fleet
        self._listens = listens
        self._node: RayNode | None = None

    async def join_cluster(self, are_reachable: Asked, others: Asked) -> None:
        """Join, or go on without it if the head is away, and there are executors or nobody else.

        `are_reachable` says whether there are addresses of executors, and `others` whether there is
        another scheduler: then requests are for that one, which has executors.

        Raises:
            CarawayError: the head is there, but cannot be joined in many attempts.
        """
        joining = tasks.begin(self._join(_FIRST_ATTEMPTS))
        try:
            while not joining.done() and not await self._is_due(joining, are_reachable, others):
                pass
        except BaseException:
            joining.cancel()
            raise
        if joining.done():
            return joining.result()
        extra = {"head": str(self._options.head)}
        logger.warning("starting without the head", extra=extra)
        joining.cancel()
        await asyncio.wait((joining,))

    async def run(self) -> None:
        """Join, if `join_cluster` did not, and again whenever the node ended.

        Raises:
            CarawayError: Ray cannot disconnect; the process must start again.
        """
        while True:
            if self._node is None:
                await self._join()
                logger.info("joined the cluster")
            assert self._node is not None
            code = await self._node.wait()
            cause = f"the Ray node ended with code {code}; its output is in {self._node.output}"
            logger.warning("rejoining the cluster", extra={"cause": cause})
            await self._fleet.leave()
            await self.aclose()

    async def aclose(self) -> None:
        """Stop the node."""
        node, self._node = self._node, None
        if node is not None:
            await node.stop()

    async def _join(self, attempts: int | None = None) -> None:
        """Start a node and join Ray through it; without `attempts`, try until it is done.

        Raises:
            CarawayError: the last attempt failed.
        """
        again = Backoff(_DELAYS)
        while True:
            try:
                self._node = await RayNode.start(self._options)
                return await self._fleet.join()
            except CarawayError as exc:
                delay_s = again.failed()
                if again.failures == attempts:
                    raise
                extra = {"head": str(self._options.head), "cause": exc.message}
                logger.warning("cannot join yet", extra=extra)
            except BaseException:
                await self.aclose()
                raise
            await self.aclose()
            await asyncio.sleep(delay_s)

    async def _is_due(
        self, joining: "asyncio.Task[None]", are_reachable: Asked, others: Asked
    ) -> bool:
        """Look for the head for some time; return whether to start without it."""
        loop = asyncio.get_running_loop()
        has_executors = await are_reachable()
        until = loop.time() + (_AWAY_REACHABLE_S if has_executors else _AWAY_S)
        while not joining.done():
            if await asyncio.to_thread(self._listens, self._options.head):
                await asyncio.wait((joining,), timeout=_AWAY_S)
                return False
            if loop.time() >= until:
                return has_executors or not await others()
            await asyncio.wait((joining,), timeout=_LOOK_S)
        return False
