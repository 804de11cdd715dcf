"""The copies of one model: kept on executors, and called."""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from caraway_assist.hosting.placing import Candidate, CopyNeeds, chosen, lacking
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import (
    CarawayError,
    ExecutorLostError,
    ModelAwayError,
    ModelError,
    ShuttingDownError,
)
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import Fleet
from caraway_core.protocols.hosting import CopyOrder, CopyState, CopyStatus

logger = logging.getLogger(__name__)
_EVERY_S = 5.0
"""Well below the time after which executors forget a copy."""
_LOADING_S = 0.5
_HOST_S = 10.0
_WAIT_S = 60.0
_UNFIT_S = 15.0
_MOST_MOVES = 2
"""A request that ends the processes of its copies must not end all of them."""
_AGAIN = Delays(0.5, 5.0)


@dataclass(frozen=True, slots=True)
class HostPlaces:
    """The executors as a model's copies see them."""

    ready: Callable[[], Sequence[Candidate]]
    is_draining: Callable[[ExecutorId], bool]
    lost: Callable[[ExecutorId, str], None]
    """Reports a lost executor, so that other calls do not wait for it."""
    counts: Callable[[], Mapping[ExecutorId, int]]
    """The number of copies that this scheduler has on each executor."""


@dataclass(slots=True, eq=False)
class _Copy:
    """A copy on one executor."""

    executor_id: ExecutorId
    status: CopyStatus
    active: int = 0
    """The calls of this scheduler that are under way."""
    used: int = 0


@dataclass(frozen=True, slots=True)
class CopyView:
    """The status of a copy for listings."""

    executor_id: ExecutorId
    state: CopyState
    progress: str
    active: int


class Copies:
    """Keeps as many copies of a model as wanted, and spreads calls over those that are ready."""

    def __init__(
        self,
        fleet: Fleet,
        places: HostPlaces,
        order: CopyOrder,
        count: int,
        clock: SecondsClock = time.monotonic,
    ) -> None:
        self.on_change: Callable[[], None] = lambda: None
        """Called when copies become ready or go away."""
        self.moved = 0
        """How often a call went to another copy, because its executor or process was lost."""
        self.order = order
        self._fleet = fleet
        self._places = places
        self._need = CopyNeeds(
            order.spec.key, count, order.cores, order.memory_bytes, order.gpus
        )  # fmt: skip
        self._clock = clock
        self._copies: dict[ExecutorId, _Copy] = {}
        self._unfit: dict[ExecutorId, tuple[float, str]] = {}
        self._turn = itertools.count(1)
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._is_settled = False
        self._has_seen = False
        self._usable = 0

    @property
    def name(self) -> str:
        return self.order.spec.name

    @property
    def wanted(self) -> int:
        return self._need.copies

    @property
    def executors(self) -> Sequence[ExecutorId]:
        return list(self._copies)

    @property
    def facts(self) -> bytes:
        """The facts that a loaded copy reports of its model; empty if no copy is loaded."""
        return next((copy.status.facts for copy in self._ready()), b"")

    def views(self) -> list[CopyView]:
        """Return the copies, ordered by executor."""
        return [
            CopyView(key, copy.status.state, copy.status.progress, copy.active)
            for key, copy in sorted(self._copies.items())
        ]

    async def run(self) -> None:
        """Keep the copies until cancelled."""
        again = Backoff(_AGAIN)
        try:
            while True:
                try:
                    await self._look()
                    again.succeeded()
                    wait_s = _EVERY_S if self._usable >= self.wanted else _LOADING_S
                except CarawayError as exc:
                    logger.warning("copies of a model not kept", extra={"model": self.name,
                                   "reason": exc.message})  # fmt: skip
                    wait_s = again.failed()
                try:
                    async with asyncio.timeout(wait_s):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                self._wake.clear()
        finally:
            for executor_id in list(self._copies):
                await self._dismiss(executor_id)

    async def wait_usable(self) -> None:
        """Wait until a copy is ready, or it is known why there is none.

        Raises:
            ModelError: no copy can be loaded, or there is none any more.
        """
        while not self._ready():
            if self._is_settled and (error := self._error()) is not None:
                raise error
            await self._wait_changed()

    async def call(self, request: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the parts of an answer; a call moves to another copy before its first part.

        Raises:
            ModelAwayError: no copy is ready for long, or the copy was lost after the first part.
            ModelError: the call failed.
        """
        moves = 0
        while True:
            copy = await self._picked()
            copy.active += 1
            copy.used = next(self._turn)
            has_begun = False
            try:
                answer = self._fleet.ask(copy.executor_id, self._need.key, request)
                async with aclosing(answer) as parts:
                    async for part in parts:
                        has_begun = True
                        yield part
                return
            except (ExecutorLostError, ShuttingDownError, ModelAwayError) as exc:
                self._left(copy, exc)
                moves += 1
                if has_begun or moves > _MOST_MOVES:
                    raise self._away(exc, has_begun=has_begun) from exc
                self.moved += 1
            except ModelError:
                raise
            except CarawayError as exc:
                raise ModelError(f"model '{self.name}': {exc.message}") from exc
            finally:
                copy.active -= 1

    async def _picked(self) -> _Copy:
        """Return the copy with the fewest calls, the one that rested longest among equals."""
        try:
            async with asyncio.timeout(_WAIT_S):
                await self.wait_usable()
        except TimeoutError:
            raise ModelAwayError(
                f"model '{self.name}': no copy was ready within {_WAIT_S:g} s; try again"
            ) from None
        return min(self._ready(), key=lambda copy: (copy.active, copy.used))

    async def _look(self) -> None:
        """Order the copies that should be there, and learn their states."""
        candidates = self._places.ready()
        self._unfit = {key: found for key, found in self._unfit.items() if found[0] > self._clock()}
        while True:
            here = chosen(self._need, candidates, self._copies, self._unfit, self._places.counts())
            leaving = [key for key in self._copies if self._places.is_draining(key)]
            keys = [*here, *(key for key in leaving if key not in here)]
            for key in [key for key in self._copies if key not in keys]:
                await self._dismiss(key)
            refusals = len(self._unfit)
            await asyncio.gather(*map(self._ordered, keys))
            if len(self._unfit) == refusals:
                break
        if len([copy for copy in self._ready() if copy.executor_id not in leaving]) >= min(
            self.wanted, max(1, len(here))
        ):
            for key in leaving:
                if (copy := self._copies.get(key)) is not None and not copy.active:
                    await self._dismiss(key)
        # When a scheduler starts, no executor has joined yet. This is not an error.
        self._has_seen = self._has_seen or bool(candidates)
        self._is_settled = self._has_seen
        self._tell()

    async def _ordered(self, executor_id: ExecutorId) -> None:
        try:
            async with asyncio.timeout(_HOST_S):
                status = await self._fleet.host(executor_id, self.order)
        except TimeoutError:
            return  # Membership notices an executor that hangs.
        except ExecutorLostError as exc:
            self._copies.pop(executor_id, None)
            self._places.lost(executor_id, exc.cause)
            return
        if status.state == "refused":
            self._copies.pop(executor_id, None)
            reason = status.error.message if status.error is not None else "it refuses"
            self._unfit[executor_id] = self._clock() + _UNFIT_S, reason
            return
        copy = self._copies.get(executor_id)
        if copy is None:
            self._copies[executor_id] = _Copy(executor_id, status)
        else:
            copy.status = status

    async def _dismiss(self, executor_id: ExecutorId) -> None:
        self._copies.pop(executor_id, None)
        try:
            await self._fleet.dismiss(executor_id, self.order.holder, self._need.key)
        except CarawayError:
            pass  # It is lost, and its copies with it.

    def _ready(self) -> list[_Copy]:
        return [copy for copy in self._copies.values() if copy.status.state == "ready"]

    def _left(self, copy: _Copy, exc: CarawayError) -> None:
        """Give a copy no calls until its executor says again that it is ready."""
        # Callers wait for the next look, which finds another place for the copy.
        self._is_settled = False
        if isinstance(exc, ExecutorLostError):
            if self._copies.get(copy.executor_id) is copy:
                del self._copies[copy.executor_id]
            self._places.lost(exc.executor_id, exc.cause)
        elif copy.status.state == "ready":
            copy.status = CopyStatus("loading", "starting again")
        self._wake.set()
        self._tell()

    def _error(self) -> ModelError | None:
        """Return why there is no copy, unless one is loading for the first time."""
        statuses = [copy.status for copy in self._copies.values()]
        if any(each.state == "loading" and each.error is None for each in statuses):
            return None
        errors = (each.error for each in statuses)
        if (error := next((each for each in errors if each is not None), None)) is not None:
            return error
        refusals = {key: reason for key, (_, reason) in self._unfit.items()}
        reason = lacking(self._need, self._places.ready(), refusals)
        return ModelAwayError(f"model '{self.name}': {reason}")

    def _away(self, exc: CarawayError, *, has_begun: bool) -> ModelAwayError:
        when = "in the middle of the answer" if has_begun else "again and again"
        what = exc.message if not isinstance(exc, ModelError) else "its process ended"
        return ModelAwayError(
            f"model '{self.name}': its copy was lost {when} ({what}); send the request again"
        )

    def _tell(self) -> None:
        usable = len(self._ready())
        if usable != self._usable:
            self._usable = usable
            self.on_change()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _wait_changed(self) -> None:
        await self._changed.wait()
