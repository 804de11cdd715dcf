"""The pages of an answer that an executor on Ray holds open."""

from collections.abc import Mapping
from dataclasses import dataclass

from caraway_core.errors import ExecutorLostError
from caraway_core.ids import ExecutorId
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import AnswerPage
from caraway_scheduler.dispatch.fleets.answers import Answers
from caraway_scheduler.dispatch.fleets.peers import NO_ANSWER, Peer, send


@dataclass(frozen=True, slots=True)
class PeerPages:
    """The pages of one call, while its executor is in the cluster."""

    peers: Mapping[ExecutorId, Peer]
    answers: Answers
    peer: Peer
    call: str

    async def fetch_page(self, cursor: str) -> AnswerPage:
        """Return the next page of an answer.

        Raises:
            ExecutorLostError: the executor has left, or is another process now.
        """
        if self.peers.get(self.peer.executor_id) is not self.peer:
            raise ExecutorLostError(self.peer.executor_id, NO_ANSWER)
        asked = self.peer.actor.next.remote(cursor)
        return wire.unpack(await self.answers.work(self.peer, self.call, asked))

    async def close_answer(self, cursor: str) -> None:
        """Close an answer that is not read to its end."""
        if self.peers.get(self.peer.executor_id) is self.peer:
            send(self.peer.actor.close, cursor)
