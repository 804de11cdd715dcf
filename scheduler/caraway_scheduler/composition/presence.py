"""Keeps a scheduler in its Ray cluster: starts its node, and another one when that ended."""

import asyncio
import logging
from typing import Protocol

from caraway_core.backoff import Backoff, Delays
from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import NodeFailedError, NodeOptions, RayNode

logger = logging.getLogger(__name__)
_DELAYS = Delays(1.0, 5.0)


class Joined(Protocol):
    """The part of a fleet that is connected to Ray."""

    async def leave(self) -> None:
        """Leave Ray."""

    async def rejoin(self) -> None:
        """Join Ray through another node."""


class Presence:
    """The Ray node of a scheduler. While there is none, the scheduler serves without executors."""

    def __init__(self, options: NodeOptions) -> None:
        self._options = options
        self._node: RayNode | None = None

    async def start(self, attempts: int | None = None) -> None:
        """Start a node; without `attempts`, try until there is one.

        Raises:
            NodeFailedError: the last attempt failed.
        """
        again = Backoff(_DELAYS)
        while True:
            try:
                self._node = await RayNode.start(self._options)
                return
            except NodeFailedError as exc:
                delay_s = again.failed()
                if again.failures == attempts:
                    raise
                if again.failures == 1 or attempts is not None:
                    extra = {"head": str(self._options.head), "cause": exc.message}
                    logger.warning("cannot join yet", extra=extra)
                await asyncio.sleep(delay_s)

    async def run(self, fleet: Joined) -> None:
        """Join again whenever the node ended.

        Raises:
            CarawayError: Ray cannot disconnect; the process must start again.
        """
        while True:
            assert self._node is not None
            code = await self._node.wait()
            cause = f"the Ray node ended with code {code}; its output is in {self._node.output}"
            logger.warning("rejoining the cluster", extra={"cause": cause})
            await fleet.leave()
            await self._rejoin(fleet)
            logger.info("rejoined the cluster")

    async def aclose(self) -> None:
        """Stop the node."""
        node, self._node = self._node, None
        if node is not None:
            await node.stop()

    async def _rejoin(self, fleet: Joined) -> None:
        again = Backoff(_DELAYS)
        while True:
            await self.aclose()
            await self.start()
            try:
                return await fleet.rejoin()
            except CarawayError as exc:
                logger.warning("cannot rejoin yet", extra={"cause": exc.message})
            await asyncio.sleep(again.failed())
