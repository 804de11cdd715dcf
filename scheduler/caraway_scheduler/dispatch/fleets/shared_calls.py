"""Sends searches that begin together to an executor as one call.

A hybrid search asks each executor for several rankings at once. A call of an actor takes some
milliseconds of processor time whatever it asks for, mostly in Ray.
"""

import asyncio
from collections.abc import Generator, Sequence
from typing import Any

from caraway_core import tasks
from caraway_core.errors import CarawayError
from caraway_core.index_orders import IndexOrder
from caraway_core.protocols import wire
from caraway_core.protocols.wire import PageOrError
from caraway_scheduler.dispatch.fleets.peers import Peer

_Sent = tuple[Any, int | None]
"""The object reference of an answer, and None; or a task for several, and which one is meant."""


class SharedAnswer:
    """The answer of a call that may have been sent with others; it can be awaited repeatedly."""

    def __init__(self, sent: "asyncio.Future[_Sent]") -> None:
        self._sent = sent

    def __await__(self) -> Generator[Any, None, Any]:
        # Whoever is cancelled must not cancel the future, which is awaited again to close the rows.
        answer, place = yield from asyncio.shield(self._sent).__await__()
        if place is None:
            return (yield from answer.__await__())
        outcome = (yield from asyncio.shield(answer).__await__())[place]
        if isinstance(outcome, CarawayError):
            raise outcome
        return outcome


class SharedCalls:
    """Collects calls of `open` until the loop has run all that is ready, then sends them.

    Calls are sent together if they have the same condition, because all wait for the slowest: the
    work of a search hardly depends on anything else.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[Peer, str | None], list[tuple[bytes, asyncio.Future[_Sent]]]] = {}

    def open(self, peer: Peer, arguments: bytes, order: IndexOrder | None) -> Any:
        """Call `open`, and return its answer, which can be awaited."""
        if order is None or order.is_explained:
            # Its work may be of any length: a statement, or the building of an index.
            return peer.actor.open.remote(arguments)
        loop = asyncio.get_running_loop()
        key = peer, order.where
        calls = self._waiting.get(key)
        if calls is None:
            calls = self._waiting[key] = []
            loop.call_soon(self._send, key)
        sent: asyncio.Future[_Sent] = loop.create_future()
        calls.append((arguments, sent))
        return SharedAnswer(sent)

    def _send(self, key: tuple[Peer, str | None]) -> None:
        calls = self._waiting.pop(key)
        try:
            answer, places = _sent(key[0].actor, [arguments for arguments, _ in calls])
        except Exception as exc:
            for _, sent in calls:
                sent.set_exception(exc)
            return
        for place, (_, sent) in zip(places, calls, strict=True):
            sent.set_result((answer, place))


def _sent(actor: Any, calls: Sequence[bytes]) -> tuple[Any, Sequence[int | None]]:
    if len(calls) == 1:
        return actor.open.remote(calls[0]), [None]
    answer = actor.open_all.remote(wire.pack_call(*calls))
    return tasks.begin(_unpacked(answer)), range(len(calls))


async def _unpacked(answer: Any) -> Sequence[PageOrError]:
    return wire.unpack_answers(await answer)
