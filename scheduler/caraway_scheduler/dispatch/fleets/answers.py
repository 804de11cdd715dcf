"""Waits for answers of executors, and ends work whose answer is awaited no longer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ray import exceptions

from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError, ExecutorLostError, PartLostError
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import Input
from caraway_core.protocols.wire import SentPage
from caraway_scheduler.dispatch.fleets.parts import makers, require_makers
from caraway_scheduler.dispatch.fleets.peers import NO_ANSWER, Peer, got, send
from caraway_scheduler.dispatch.fleets.ray_failures import translate

_ABANDONED_S = 60.0


class Answers:
    """Waits for answers of Ray, and reports failures of its calls to `on_failure`."""

    def __init__(self, on_failure: Callable[[Peer, exceptions.RayError], None]) -> None:
        self._on_failure = on_failure
        self._abandoned = tasks.Tasks()

    def cancel(self) -> None:
        """Stop closing abandoned answers."""
        self._abandoned.cancel()

    async def work(
        self, peer: Peer, call: str, answer: object, inputs: Sequence[Input] = ()
    ) -> Any:
        """Wait for the answer of a call that can be cancelled by its name."""
        return await self._unless_left(peer, call, answer, self.answer(peer, answer, inputs))

    async def over_channel(self, peer: Peer, call: str, answer: "asyncio.Future[Any]") -> Any:
        """Wait for the answer of such a call over a channel."""
        # Whoever leaves must not cancel the answer, which is awaited again to close it.
        return await self._unless_left(peer, call, answer, asyncio.shield(answer))

    async def answer(self, peer: Peer, answer: Any, inputs: Sequence[Input] = ()) -> Any:
        """Wait for an answer, as long as its executor and those that made its inputs are there."""
        # An executor waits for inputs until Ray knows that their node is lost, which takes longer
        # than a heartbeat.
        own = peer.gone
        gone = {own, *makers(inputs)}
        answered = tasks.begin(got(answer))
        try:
            await asyncio.wait((answered, *gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            answered.cancel()
        if not answered.done():
            if not own.done():
                require_makers(inputs)
            raise ExecutorLostError(peer.executor_id, NO_ANSWER)
        try:
            return answered.result()
        except exceptions.RayError as exc:
            self._on_failure(peer, exc)
            raise translate(exc, peer.executor_id, inputs) from exc

    async def _unless_left(
        self, peer: Peer, call: str, answer: object, wait: Awaitable[object]
    ) -> object:
        """Wait for an answer; if the caller leaves or an input is lost, end the work there."""
        try:
            return await wait
        except (asyncio.CancelledError, PartLostError):
            send(peer.actor.cancel, call)
            self._abandoned.spawn(self._see_off(peer, answer), "close an abandoned answer")
            raise

    async def _see_off(self, peer: Peer, answer: object) -> None:
        """Close what a cancelled call may have opened after its cancellation."""
        try:
            async with asyncio.timeout(_ABANDONED_S):
                opened = await self.answer(peer, answer)
        except (CarawayError, TimeoutError):
            return
        if isinstance(opened, SentPage) and not (page := wire.unpack(opened)).is_last:
            send(peer.actor.close, page.cursor)
