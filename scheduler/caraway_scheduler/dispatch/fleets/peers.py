"""Describes an executor as the fleet sees it."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Any

from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Description
from caraway_scheduler.dispatch.fleets.channel_calls import ChannelCalls
from caraway_scheduler.dispatch.fleets.reaching import ChannelActor

NO_ANSWER = "it no longer answers"
"""Why calls fail once their executor is known to be gone."""


@dataclass(slots=True, eq=False)
class Peer:
    """A known executor. When `gone` completes, calls to it stop waiting."""

    executor_id: ExecutorId
    actor: Any
    gone: "asyncio.Future[None]"
    asked: "asyncio.Future[Description] | None" = field(default=None)
    """The answer to the last heartbeat."""
    asked_s: float = field(default=0.0)
    """When that was sent."""
    direct: ChannelCalls | None = field(default=None)
    """Its channel, while it has one."""
    carries_tasks: bool = field(default=False)
    """True if it runs tasks over its channel."""

    @property
    def is_on_ray(self) -> bool:
        """True if Ray carries calls of its actor. Only Ray carries tables of exchanges."""
        return not isinstance(self.actor, ChannelActor)

    def let_go(self) -> None:
        """Fail the running calls; later calls wait again."""
        if self.direct is not None:
            self.direct.close(NO_ANSWER)
            self.direct = None
        gone, self.gone = self.gone, asyncio.get_running_loop().create_future()
        if not gone.done():
            gone.set_result(None)


def send(method: Any, *arguments: Any) -> None:
    """Call a method without waiting for its answer; failures are ignored."""
    # Ray raises for a handle of the time before it was left.
    with contextlib.suppress(Exception):
        method.remote(*arguments)


async def got(answer: Any) -> Any:
    """Await an object reference."""
    return await answer
