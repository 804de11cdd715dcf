"""Connects to executors where they listen, next to their heartbeats."""

import asyncio
import logging
import time

from caraway_core.channels.handshake import NoProofError
from caraway_core.concurrency import backoff
from caraway_core.concurrency.backoff import Backoff
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.concurrency.tasks import Tasks
from caraway_core.ids import ExecutorId
from caraway_core.settings import Address
from caraway_scheduler.dispatch.fleets.channel_calls import ChannelCalls
from caraway_scheduler.dispatch.fleets.peers import NO_ANSWER, Peer

logger = logging.getLogger(__name__)


class Connecting:
    """Gives peers their channels, and new ones after these were closed.

    Calls use Ray until there is a channel. So an executor that cannot be connected to only answers
    short statements more slowly; the log tells it once.
    """

    def __init__(self, token: str, clock: SecondsClock = time.monotonic) -> None:
        self._token = token
        self._clock = clock
        self._tasks = Tasks()
        self._under_way: set[ExecutorId] = set()
        self._failed: dict[ExecutorId, tuple[Address, Backoff, float]] = {}
        """The place that could not be reached, and when to try it again."""

    def look(self, peer: Peer, place: Address | None) -> None:
        """Begin to connect to where an executor listens now, if there is no channel to it."""
        if peer.direct is not None and peer.direct.is_open and peer.direct.place == place:
            return
        if place is None or peer.executor_id in self._under_way:
            return
        failed = self._failed.get(peer.executor_id)
        if failed is not None and failed[0] == place and self._clock() < failed[2]:
            return
        self._under_way.add(peer.executor_id)
        self._tasks.spawn(self._connect(peer, place, peer.gone), "connect to an executor")

    def close(self) -> None:
        """Stop connecting."""
        self._tasks.cancel()

    async def _connect(self, peer: Peer, place: Address, gone: "asyncio.Future[None]") -> None:
        direct = ChannelCalls(peer.executor_id, place)
        try:
            await direct.connect(self._token)
        except NoProofError as exc:
            self._note(peer.executor_id, place, exc)
        else:
            self._failed.pop(peer.executor_id, None)
            if gone.done():
                # Lost meanwhile: the next heartbeat decides.
                direct.close(NO_ANSWER)
                return
            if peer.direct is not None:
                peer.direct.close("it listens elsewhere now")
            peer.direct = direct
        finally:
            self._under_way.discard(peer.executor_id)

    def _note(self, executor_id: ExecutorId, place: Address, exc: NoProofError) -> None:
        known = self._failed.get(executor_id)
        again = known[1] if known is not None and known[0] == place else Backoff(backoff.USUAL)
        self._failed[executor_id] = place, again, self._clock() + again.failed()
        if again.failures == 1:
            logger.warning(
                "no channel to an executor, so calls go through Ray",
                extra={"executor_id": executor_id, "cause": exc.message},
            )
