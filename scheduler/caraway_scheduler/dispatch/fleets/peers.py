"""An executor as a fleet of actors sees it, and the inputs of a task in the form it takes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Description, Input
from caraway_core.protocols.wire import InputShape


@dataclass(slots=True, eq=False)
class Peer:
    """An executor that was found; `gone` is done when calls to it must not wait any longer."""

    executor_id: ExecutorId
    actor: Any
    gone: "asyncio.Future[None]"
    asked: "asyncio.Future[Description] | None" = field(default=None)

    def let_go(self) -> None:
        """Fail the calls under way; those that follow wait again."""
        gone, self.gone = self.gone, asyncio.get_running_loop().create_future()
        if not gone.done():
            gone.set_result(None)


def shapes(inputs: Sequence[Input]) -> list[InputShape]:
    return [
        InputShape(each.name, each.schema, tuple(part.executor_id for part in each.parts))
        for each in inputs
    ]


def handles(inputs: Sequence[Input]) -> list[Any]:
    return [part.handle for each in inputs for part in each.parts]


def send(method: Any, *arguments: Any) -> None:
    """Call and let the answer go; no failure is kept that nobody asks for."""
    method.remote(*arguments)


async def got(answer: Any) -> Any:
    return await answer
