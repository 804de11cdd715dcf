"""Describes an executor as the fleet sees it, and converts task inputs for its actor."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_core.errors import PartLostError
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Description, Input
from caraway_core.protocols.wire import InputShape
from caraway_scheduler.dispatch.fleets.channel_calls import ChannelCalls
from caraway_scheduler.dispatch.fleets.reaching import ChannelActor

NO_ANSWER = "it no longer answers"
"""Why calls fail once their executor is known to be gone."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A table of an exchange in Ray's store, and the loss of the executor that made it."""

    reference: Any
    gone: "asyncio.Future[None]"

    def hex(self) -> str:
        return str(self.reference.hex())


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


def shapes(inputs: Sequence[Input]) -> list[InputShape]:
    """Return the descriptions of task inputs that an actor needs."""
    return [
        InputShape(each.name, each.schema, tuple(part.executor_id for part in each.parts))
        for each in inputs
    ]


def handles(inputs: Sequence[Input]) -> list[object]:
    """Return the object references of all parts of the inputs.

    Raises:
        PartLostError: an executor was lost after it had made a part.
    """
    # After Ray was left and joined again, it must not see the references of before.
    require_makers(inputs)
    return [part.handle.reference for each in inputs for part in each.parts]


def require_makers(inputs: Sequence[Input]) -> None:
    """Check that no executor was lost after it had made a part of the inputs.

    Raises:
        PartLostError: one was.
    """
    for part in (part for each in inputs for part in each.parts):
        if part.handle.gone.done():
            name = part.executor_id
            raise PartLostError(f"executor '{name}' was lost with rows of the query", name)


def send(method: Any, *arguments: Any) -> None:
    """Call a method without waiting for its answer; failures are ignored."""
    # Ray raises for a handle of the time before it was left.
    with contextlib.suppress(Exception):
        method.remote(*arguments)


async def got(answer: Any) -> Any:
    """Await an object reference."""
    return await answer
