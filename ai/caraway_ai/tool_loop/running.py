"""Runs the calls of tools that a model asks for."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from caraway_ai.tool_loop.calls import ToolCall
from caraway_ai.tool_loop.rounds import ToolRounds
from caraway_ai.tools import arguments as arguments_
from caraway_ai.tools import bounding
from caraway_ai.tools.bounding import ToolLimits
from caraway_ai.tools.protocol import ToolCaller, ToolDefinition
from caraway_ai.tools.selecting import ToolSelection
from caraway_core.errors import CarawayError

logger = logging.getLogger(__name__)
DEFAULT_ROUNDS = 10
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """The limits of a loop. Results are smaller than over HTTP, for a model reads all of them.

    With `shows_progress`, the text of a stream reports the calls.
    """

    most_rounds: int = DEFAULT_ROUNDS
    rows: int = 200
    bytes: int = 32 * 1024
    shows_progress: bool = False


@dataclass(frozen=True, slots=True)
class LoopTools:
    """The tools of one call of a model; `caller` says in whose name they run."""

    selection: ToolSelection
    caller: Callable[[], ToolCaller]
    settings: LoopSettings = field(default_factory=LoopSettings)

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        return self.selection.definitions

    async def run_calls(self, rounds: ToolRounds, wanted: Sequence[ToolCall]) -> None:
        """Run calls concurrently; results are in the order of the calls."""
        room = asyncio.Semaphore(_AT_ONCE)
        refusals = [rounds.refusal(call) for call in wanted]

        async def run(call: ToolCall, refusal: str | None) -> str:
            async with room:
                return _error(refusal) if refusal else await self._result(call)

        async with asyncio.TaskGroup() as group:
            running = [
                group.create_task(run(call, refusal))
                for call, refusal in zip(wanted, refusals, strict=True)
            ]
        for call, result in zip(wanted, running, strict=True):
            rounds.take_result(call, result.result())

    async def _result(self, call: ToolCall) -> str:
        """Return the text that a model reads; a failure is a text, too."""
        limits = ToolLimits(self.settings.rows, self.settings.bytes)
        try:
            arguments = arguments_.parse(call.arguments)
            result = await self.selection.call(call.name, arguments, self.caller())
            result = bounding.bounded(call.name, result, limits)
        except CarawayError as exc:
            return _error(exc.message)
        except Exception:
            logger.exception("tool failed", extra={"tool": call.name})
            return _error(f"tool '{call.name}' failed; try another way")
        return _dumped(result)


def _error(message: str) -> str:
    return _dumped({"error": message})


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
