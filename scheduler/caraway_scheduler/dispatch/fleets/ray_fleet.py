"""The fleet of executors on Ray. Only modules of this package know Ray in the scheduler."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import ray
from ray import exceptions

from caraway_core.changes import Log
from caraway_core.concurrency import tasks
from caraway_core.errors import (
    CarawayError,
    ExecutorLostError,
    NotDistributableError,
    PartLostError,
)
from caraway_core.ids import ExecutorId, QueryId, TableName, new_query_id
from caraway_core.protocols import wire
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import (
    ANSWER_S,
    AnswerPage,
    Description,
    Input,
    Pinned,
    TableCatalog,
    Task,
    TaskOutcome,
    TaskTable,
)
from caraway_core.protocols.hosting import CopyOrder, CopyStatus
from caraway_core.protocols.offers import Offer, OfferOutcome
from caraway_core.statements import Statement
from caraway_core.tables import StoredTable
from caraway_scheduler.dispatch.fleets import paging
from caraway_scheduler.dispatch.fleets.answers import Answers
from caraway_scheduler.dispatch.fleets.connecting import Connecting
from caraway_scheduler.dispatch.fleets.finding import CAUSE_LENGTH, Finding
from caraway_scheduler.dispatch.fleets.joining import RayDriver, find
from caraway_scheduler.dispatch.fleets.paging import PagedStream, PeerPages
from caraway_scheduler.dispatch.fleets.parts import (
    CARRIED_BYTES,
    fetched,
    handles,
    shapes,
)
from caraway_scheduler.dispatch.fleets.peers import NO_ANSWER, Peer, got, send
from caraway_scheduler.dispatch.fleets.ray_failures import is_dead
from caraway_scheduler.dispatch.fleets.reaching import (
    ChannelActor,
    Places,
    Reaching,
    no_places,
)
from caraway_scheduler.dispatch.fleets.sharing import SharedObjects
from caraway_scheduler.dispatch.fleets.task_calls import TaskCalls
from caraway_scheduler.dispatch.fleets.waiting import in_thread

logger = logging.getLogger(__name__)
_FETCH_S = 10.0
_FINDING_S = 5.0
_LEAVE_S = 30.0
_ASK_AGAIN_S = 10.0
"""A heartbeat without an answer is sent again after this time."""


class RayFleet:
    """Joins Ray as a driver and calls the actors of executors by name."""

    def __init__(
        self, token: str, driver: RayDriver | None = None, places: Places = no_places
    ) -> None:
        """Set the connection to Ray, unless somebody else has joined Ray in this process.

        `places` returns the addresses at which executors are reached while this process is in no
        Ray cluster.
        """
        self._driver = driver
        self._connecting = Connecting(token)
        self._peers: dict[ExecutorId, Peer] = {}
        self._finding = Finding[Any](_find_on_ray, "cannot list executors")
        self._reaching = Finding(Reaching(token, places).reach, "no addresses of executors")
        self._origin = ""  # Also of catalogs that executors keep while this process rejoins.
        self._answers = Answers(self._forget_if_dead)
        self._task_calls = TaskCalls(self._answers)
        self._sharing = SharedObjects(self._answers, ray.put)
        self._calls = 0

    async def leave(self) -> None:
        """Leave Ray, whose node here has ended. Running calls fail as for lost executors.

        Raises:
            CarawayError: it cannot leave.
        """
        assert self._driver is not None
        self._driver.is_joined = False
        self._forget_all()
        # It is a call of Ray in a thread.
        await self._finding.leave(_FINDING_S)
        # Meanwhile executors are reached by address.
        await self._driver.leave(_LEAVE_S)

    async def join(self) -> None:
        """Join Ray through the node of this host. Until then executors are reached by address.

        Raises:
            CarawayError: the cluster cannot be joined.
        """
        assert self._driver is not None
        await self._driver.join()

    async def describe(
        self, origin: str = "", pinned: Pinned | None = None
    ) -> Sequence[Description]:
        loop = asyncio.get_running_loop()
        until = loop.time() + ANSWER_S
        if self._driver is None or self._driver.is_joined:
            await self._find()
        else:
            await self._reach()
        left_s = max(0.0, until - loop.time())
        answers = [self._heartbeat(peer, origin, pinned, left_s) for peer in self._peers.values()]
        return [answer for answer in await asyncio.gather(*answers) if answer is not None]

    async def install(
        self, executor_id: ExecutorId, catalog: TableCatalog
    ) -> Mapping[TableName, str]:
        peer = self._peer(executor_id)
        if catalog.files:
            await self._sharing.send_files(peer, catalog.files)
        self._origin = catalog.origin
        given = await self._sharing.catalog(peer, catalog)
        failed: Mapping[TableName, str] = await self._answers.answer(
            peer, peer.actor.install.remote(given)
        )
        return failed

    async def load(
        self,
        executor_id: ExecutorId,
        origin: str,
        table: TableName,
        spec: StoredTable,
        chunks: Sequence[str],
        log: Log = (),
    ) -> int:
        peer = self._peer(executor_id)
        rows: int = await self._answers.answer(
            peer, peer.actor.load.remote(origin, table, spec, chunks, log)
        )
        return rows

    async def put_back(
        self,
        executor_id: ExecutorId,
        origin: str,
        table: TableName,
        spec: StoredTable,
        log: Log = (),
    ) -> int:
        peer = self._peer(executor_id)
        count: int = await self._answers.answer(
            peer, peer.actor.put_back.remote(origin, table, spec, log)
        )
        return count

    async def probe(self, executor_id: ExecutorId) -> None:
        statement = Statement("SELECT 1", {})
        stream = await self.execute(executor_id, new_query_id(), statement, self._origin)
        await stream.aclose()

    async def run_task(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> TaskOutcome:
        peer = self._peer(executor_id)
        if not peer.is_on_ray:
            raise NotDistributableError(
                f"executor '{executor_id}' is reached without the head, so there are no exchanges"
            )
        most_bytes = CARRIED_BYTES // len(self._peers)
        call = self._call(task.query_id)
        return await self._task_calls.run_task(peer, call, task, inputs, most_bytes)

    async def stream(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> BatchStream:
        peer = self._peer(executor_id)
        call = self._call(task.query_id)
        page = await self._task_calls.open_task(peer, call, task, inputs)
        return self._paged(peer, call, page)

    async def offer(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input], offer: Offer
    ) -> None:
        peer = self._peer(executor_id)
        call = self._call(task.query_id)
        answer = peer.actor.offer.remote(
            wire.pack_call(call, task, offer, shapes(inputs)), *handles(inputs)
        )
        await self._answers.work(peer, call, answer, inputs)

    async def attend(self, executor_id: ExecutorId, offer_id: str) -> OfferOutcome:
        peer = self._peer(executor_id)
        outcome: OfferOutcome = await self._answers.answer(peer, peer.actor.attend.remote(offer_id))
        return outcome

    async def withdraw(self, executor_id: ExecutorId, offer_id: str, reason: CarawayError) -> None:
        peer = self._peers.get(executor_id)
        if peer is not None:
            send(peer.actor.withdraw, offer_id, reason)

    async def read_offer(self, executor_id: ExecutorId, offer_id: str) -> BatchStream:
        peer = self._peer(executor_id)
        call = self._call(QueryId(offer_id))
        packed = await self._answers.work(peer, call, peer.actor.take.remote(call, offer_id))
        return self._paged(peer, call, wire.unpack(packed))

    async def fetch(self, inputs: Sequence[Input]) -> Sequence[TaskTable]:
        parts = handles(inputs)
        try:
            async with asyncio.timeout(_FETCH_S):
                tables = iter(await asyncio.gather(*map(fetched, parts)))
        except (exceptions.RayError, TimeoutError) as exc:
            raise PartLostError(f"an exchange of the query was lost: {exc}", None) from exc
        return [
            TaskTable(each.name, each.schema, tuple(islice(tables, len(each.parts))))
            for each in inputs
        ]

    async def execute(
        self, executor_id: ExecutorId, query_id: QueryId, statement: Statement, catalog: str
    ) -> BatchStream:
        peer = self._peer(executor_id)
        call = self._call(query_id)
        arguments = wire.pack_call(call, query_id, statement, catalog)
        if peer.direct is not None and peer.direct.is_open:
            packed = await self._answers.over_channel(peer, call, peer.direct.open(arguments))
        else:
            packed = await self._answers.work(peer, call, peer.actor.open.remote(arguments))
        return self._paged(peer, call, wire.unpack(packed))

    async def host(self, executor_id: ExecutorId, order: CopyOrder) -> CopyStatus:
        peer = self._peer(executor_id)
        status: CopyStatus = await self._answers.answer(peer, peer.actor.host.remote(order))
        return status

    async def dismiss(self, executor_id: ExecutorId, holder: str, key: str) -> None:
        if (peer := self._peers.get(executor_id)) is not None:
            send(peer.actor.dismiss, holder, key)

    def ask(self, executor_id: ExecutorId, key: str, request: bytes) -> AsyncGenerator[bytes, None]:
        peer = self._peer(executor_id)
        return paging.ask_copy(
            lambda made: self._answers.answer(peer, made), peer.actor, key, request
        )

    async def refuse(self, executor_id: ExecutorId, reason: str) -> None:
        peer = self._peer(executor_id)
        await self._answers.answer(peer, peer.actor.refuse.remote(reason))

    def lost(self, executor_id: ExecutorId) -> None:
        peer = self._peers.get(executor_id)
        if peer is not None:
            peer.let_go()

    async def aclose(self) -> None:
        self._connecting.close()
        self._forget_all()
        for direct in (await self._reaching.leave(0)).values():
            direct.close(NO_ANSWER)
        if self._driver is not None and self._driver.is_joined:
            try:
                await self._driver.leave()
            except CarawayError as exc:
                logger.warning("Ray did not shut down in time", extra={"cause": exc.message})

    def _forget_all(self) -> None:
        """Let go of all executors and of everything that is in Ray's store."""
        self._answers.cancel()
        for executor_id in list(self._peers):
            self.lost(executor_id)
        self._peers.clear()
        self._sharing.forget()

    async def _find(self) -> None:
        """Look for new executors; while the head is away, the known ones stay."""
        executor_ids = {executor_id for executor_id, peer in self._peers.items() if peer.is_on_ray}
        for executor_id, actor in (await self._finding.found(executor_ids)).items():
            peer = self._peers.get(executor_id)
            if peer is None:
                self._meet(executor_id, actor)
            elif not peer.is_on_ray:
                # The same executor: its running calls and its catalogs stay.
                peer.actor = actor

    async def _reach(self) -> None:
        """Connect to executors whose addresses are stored."""
        for executor_id, direct in (await self._reaching.found(set(self._peers))).items():
            if executor_id in self._peers:
                direct.close(NO_ANSWER)
            else:
                self._meet(executor_id, ChannelActor(direct)).direct = direct

    def _meet(self, executor_id: ExecutorId, actor: object) -> Peer:
        peer = Peer(executor_id, actor, asyncio.get_running_loop().create_future())
        self._peers[executor_id] = peer
        return peer

    async def _heartbeat(
        self, peer: Peer, origin: str, pinned: Pinned | None, wait_s: float
    ) -> Description | None:
        # One question at a time: otherwise a paused process would answer all of them at once. An
        # answer that arrives after its caller gave up is outdated, so ask again. Also ask again if
        # there is no answer: a connection that the executor gave up while it was cut off looks
        # open until something is sent, and Ray sends nothing for 7 minutes.
        now_s = asyncio.get_running_loop().time()
        try:
            if peer.asked is None or peer.asked.done() or now_s - peer.asked_s > _ASK_AGAIN_S:
                peer.asked = tasks.begin(got(peer.actor.describe.remote(origin, pinned)))
                peer.asked_s = now_s
            done, _ = await asyncio.wait((peer.asked,), timeout=wait_s)
            if not done:
                return None
            described = peer.asked.result()
            if described.executor_id != peer.executor_id:
                # Its address belongs to another executor now.
                raise ExecutorLostError(peer.executor_id, "another executor answers there")
            peer.carries_tasks = described.carries_tasks
            self._connecting.look(peer, described.channels)
            return described
        except exceptions.RayError as exc:
            self._forget_if_dead(peer, exc)
        except ExecutorLostError:
            self._forget(peer)  # Its channel was closed.
        except Exception as exc:  # noqa: BLE001 -- the handle may be broken
            # Ray returns a handle without methods if it cannot load an actor's class. Report it,
            # continue with the other executors, and look this one up again.
            extra = {"executor_id": peer.executor_id, "cause": str(exc)[:CAUSE_LENGTH]}
            logger.warning("executor cannot be called", extra=extra)
            self._forget(peer)
        return None

    def _peer(self, executor_id: ExecutorId) -> Peer:
        peer = self._peers.get(executor_id)
        if peer is None:
            raise ExecutorLostError(executor_id, "it is not in the cluster")
        return peer

    def _call(self, query_id: QueryId) -> str:
        """Name a call, so that it can be cancelled alone: its query may already run again."""
        self._calls += 1
        return f"{query_id}/{self._calls}"

    def _paged(self, peer: Peer, call: str, first: AnswerPage) -> PagedStream:
        return PagedStream(first, PeerPages(self._peers, self._answers, peer, call))

    def _forget_if_dead(self, peer: Peer, exc: exceptions.RayError) -> None:
        if is_dead(exc):
            self._forget(peer)

    def _forget(self, peer: Peer) -> None:
        if self._peers.get(peer.executor_id) is peer:
            del self._peers[peer.executor_id]
            peer.let_go()


async def _find_on_ray(executor_ids: set[ExecutorId]) -> Mapping[ExecutorId, object]:
    found: Mapping[ExecutorId, Any] = await in_thread(partial(find, executor_ids), "ray")
    return found
