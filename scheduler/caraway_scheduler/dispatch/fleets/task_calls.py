"""Runs tasks of exchanges on executors: over channels while their rows are few, else on Ray."""

from collections.abc import Iterable, Sequence
from typing import Any

from caraway_core.protocols import wire
from caraway_core.protocols.fleet import (
    AnswerPage,
    ExchangePart,
    Input,
    Task,
    TaskOutcome,
    TaskReport,
)
from caraway_core.protocols.wire import RUN_CARRIED, CarriedAnswer
from caraway_scheduler.dispatch.fleets.answers import Answers
from caraway_scheduler.dispatch.fleets.channel_calls import ChannelCalls
from caraway_scheduler.dispatch.fleets.parts import Carried, Held, handles, packed, shapes
from caraway_scheduler.dispatch.fleets.peers import Peer


class TaskCalls:
    """Runs tasks whose tables stay in the exchange."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    async def run_task(
        self, peer: Peer, call: str, task: Task, inputs: Sequence[Input], most_bytes: int
    ) -> TaskOutcome:
        """Run a task. If its inputs are here, and its tables are small, Ray has no part in it.

        Tables of at most so many bytes in all are carried by this process.
        """
        channel, tables = _channel(peer), packed(inputs)
        if channel is None or tables is None:
            return await self._run_on_ray(peer, call, task, inputs)
        arguments = call, task, shapes(inputs), tables, most_bytes
        answering = channel.call(RUN_CARRIED, arguments)
        answer: CarriedAnswer = await self._answers.over_channel(peer, call, answering)
        if answer.tables is not None:
            return _outcome(peer, answer.report, map(Carried, answer.tables))
        gone, count = peer.gone, len(answer.report.sizes)
        _, references = await self._call_on_ray(peer, call, None, (), count)
        return _outcome(peer, answer.report, (Held(each, gone) for each in references))

    async def open_task(
        self, peer: Peer, call: str, task: Task, inputs: Sequence[Input]
    ) -> AnswerPage:
        """Run a task, and return the first page of its rows."""
        arguments = wire.pack_call(call, task, shapes(inputs))
        channel, tables = _channel(peer), handles(inputs)
        if channel is None or packed(inputs) is None:
            answer = peer.actor.open_task.remote(arguments, *tables)
            return wire.unpack(await self._answers.work(peer, call, answer, inputs))
        answering = channel.call("open_task", (arguments, *tables))
        return wire.unpack(await self._answers.over_channel(peer, call, answering))

    async def _run_on_ray(
        self, peer: Peer, call: str, task: Task, inputs: Sequence[Input]
    ) -> TaskOutcome:
        count = task.split.count if task.split else 1
        gone = peer.gone
        report, references = await self._call_on_ray(peer, call, task, inputs, count)
        return _outcome(peer, report, (Held(each, gone) for each in references))

    async def _call_on_ray(
        self, peer: Peer, call: str, task: Task | None, inputs: Sequence[Input], count: int
    ) -> tuple[TaskReport, Sequence[Any]]:
        """Call `run` of the actor; without a task, it returns the tables that the call left."""
        method = peer.actor.run.options(num_returns=1 + count)
        arguments = wire.pack_call(call, task, shapes(inputs))
        reported, *references = method.remote(arguments, *handles(inputs))
        return await self._answers.work(peer, call, reported, inputs), references


def _channel(peer: Peer) -> ChannelCalls | None:
    """Return the channel over which an executor runs tasks, if there is one."""
    is_open = peer.direct is not None and peer.direct.is_open
    return peer.direct if is_open and peer.carries_tasks else None


def _outcome(peer: Peer, report: TaskReport, made: Iterable[object]) -> TaskOutcome:
    parts = (
        ExchangePart(handle, peer.executor_id, rows, size_bytes)
        for handle, (rows, size_bytes) in zip(made, report.sizes, strict=True)
    )
    return TaskOutcome(tuple(parts), report.elapsed_ms, report.profile)
