"""Reaches executors over channels alone, for as long as this scheduler is in no Ray cluster.

The addresses are those that schedulers have stored. An address is only a hint: whoever listens
there proves the cluster's token, and heartbeats name the executor.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from caraway_core.channels.handshake import NoProofError
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.ids import ExecutorId
from caraway_core.settings import Address
from caraway_scheduler.dispatch.fleets.channel_calls import ChannelCalls

Places = Callable[[], Awaitable[Mapping[ExecutorId, Address]]]
_DELAYS = Delays(1.0, 10.0)


async def no_places() -> Mapping[ExecutorId, Address]:
    """Return no address: for a fleet whose executors are found through Ray alone."""
    return {}


class Reaching:
    """Connects to executors whose addresses are known."""

    def __init__(self, token: str, places: Places) -> None:
        self._token = token
        self._places = places
        self._failed: dict[Address, tuple[Backoff, float]] = {}
        """The addresses that could not be reached, and when to try them again."""

    async def reach(self, known: set[ExecutorId]) -> Mapping[ExecutorId, ChannelCalls]:
        """Return a channel to each executor that is not known yet, and that can be reached.

        Raises:
            CarawayError: the state store does not answer.
        """
        places = await self._places()
        for gone in self._failed.keys() - set(places.values()):
            del self._failed[gone]
        calls = [
            ChannelCalls(executor_id, place)
            for executor_id, place in places.items()
            if executor_id not in known and self._is_due(place)
        ]
        connected = await asyncio.gather(*map(self._connect, calls))
        return {each.executor_id: each for each in connected if each is not None}

    def _is_due(self, place: Address) -> bool:
        failed = self._failed.get(place)
        return failed is None or time.monotonic() >= failed[1]

    async def _connect(self, direct: ChannelCalls) -> ChannelCalls | None:
        try:
            await direct.connect(self._token)
        except NoProofError:
            again = self._failed.get(direct.place, (Backoff(_DELAYS), 0.0))[0]
            self._failed[direct.place] = again, time.monotonic() + again.failed()
            return None
        self._failed.pop(direct.place, None)
        return direct


class ChannelActor:
    """The methods of an executor's actor over a channel, called as those of Ray are."""

    def __init__(self, direct: ChannelCalls) -> None:
        self._direct = direct

    def __getattr__(self, name: str) -> "_Method":
        return _Method(self._direct, name)


class _Method:
    def __init__(self, direct: ChannelCalls, name: str) -> None:
        self._direct = direct
        self._name = name

    def remote(self, *arguments: object) -> "_Answer":
        return _Answer(self._direct.call(self._name, arguments))


class _Answer:
    """An answer that can be awaited repeatedly, also after a caller was cancelled."""

    def __init__(self, answer: "asyncio.Future[object]") -> None:
        self._answer = answer
        answer.add_done_callback(_retrieve)

    def __await__(self) -> object:
        return asyncio.shield(self._answer).__await__()


def _retrieve(answer: "asyncio.Future[object]") -> None:
    """Mark an exception as seen: of some calls, nobody awaits the answer."""
    if not answer.cancelled():
        answer.exception()
