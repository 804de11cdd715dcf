"""The copies of models that schedulers have this executor host."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from caraway_core.concurrency import tasks as background
from caraway_core.concurrency.backoff import Cooldown, Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError, ModelAwayError, ModelError
from caraway_core.protocols.hosting import (
    AnswerParts,
    CopyOrder,
    CopyState,
    CopyStatus,
    HostedModel,
    HostRoom,
)
from caraway_executor.models.model_calls import ModelCalls
from caraway_executor.resources.room import TaskMemory

logger = logging.getLogger(__name__)
FORGOTTEN_S = 60.0
"""A copy that no scheduler has ordered for this long is ended."""
_AGAIN = Delays(2.0, 60.0)


@dataclass(slots=True, eq=False)
class _Copy:
    """One model, and the schedulers that keep it here."""

    order: CopyOrder
    gpus: tuple[int, ...]
    cooldown: Cooldown
    holders: dict[str, float] = field(default_factory=dict)
    """When each scheduler has ordered it last."""
    model: HostedModel | None = None
    state: CopyState = "loading"
    facts: bytes = b""
    error: ModelError | None = None
    loading: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.order.spec.name


class ModelCopies:
    """Loads models, keeps them within the resources of the executor, and calls them.

    Call it from one event loop.
    """

    def __init__(
        self,
        cores: int,
        gpus: int,
        memory: TaskMemory,
        folder: Path,
        clock: SecondsClock,
    ) -> None:
        """Take the budget that holds the memory of copies, too, and the folder of their files."""
        self._cores = cores
        self._gpus = gpus
        self._memory = memory
        self._folder = folder
        self._clock = clock
        self._copies: dict[str, _Copy] = {}
        self._calls = ModelCalls(clock)
        self._tasks = background.Tasks()

    @property
    def active(self) -> int:
        """The calls under way."""
        return len(self._calls)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all models here."""
        return tuple(sorted(self._copies))

    @property
    def names(self) -> Sequence[str]:
        """The names of the models that are ready."""
        return sorted(copy.name for copy in self._copies.values() if copy.state == "ready")

    @property
    def answered(self) -> dict[str, int]:
        """The calls that each model has answered."""
        return self._calls.answered

    def order(self, order: CopyOrder, *, is_draining: bool = False) -> CopyStatus:
        """Host a copy, or go on to host it, and return its state; nothing is waited for."""
        key = order.spec.key
        copy = self._copies.get(key)
        if copy is None:
            if is_draining:
                return _refused("the executor is draining")
            if (reason := self._lacks(order)) is not None:
                return _refused(reason)
            copy = self._begin(order)
        copy.holders[order.holder] = self._clock()
        if copy.state == "failed" and not copy.cooldown.left_s:
            self._spawn(copy)
        progress = copy.model.progress if copy.model is not None else "starting"
        return CopyStatus(
            copy.state,
            progress if copy.state == "loading" else "",
            copy.facts,
            copy.error,
            self._calls.count_of(key),
        )

    def dismiss(self, holder: str, key: str) -> None:
        """Note that a scheduler needs a copy no more; the last one ends it."""
        copy = self._copies.get(key)
        if copy is None:
            return
        copy.holders.pop(holder, None)
        if not copy.holders:
            self._end(key)

    async def ask(self, call: str, key: str, request: bytes) -> AnswerParts:
        """Call a model, and return the first parts of its answer.

        Raises:
            ModelAwayError: there is no copy here, or it is not loaded.
            ModelError: the call failed.
        """
        copy = self._copies.get(key)
        if copy is None or copy.model is None or copy.state != "ready":
            raise ModelAwayError("the executor has no copy of the model that is ready")
        return await self._calls.begin_call(
            call, key, copy.name, copy.model.answer(request), lambda: self._check(copy)
        )

    async def next(self, call: str) -> AnswerParts:
        """Return the next parts of an answer; it waits for one.

        Raises:
            ModelError: the call failed, or is not known.
        """
        return await self._calls.next(call)

    async def end(self, call: str) -> None:
        """End a call whose answer is not read."""
        await self._calls.end(call)

    async def tend(self) -> None:
        """End what no scheduler has asked for lately."""
        await self._calls.end_forgotten()
        oldest_s = self._clock() - FORGOTTEN_S
        for key, copy in list(self._copies.items()):
            holders = {each: at for each, at in copy.holders.items() if at >= oldest_s}
            copy.holders = holders
            if not holders and not self._calls.count_of(key):
                logger.info("model forgotten", extra={"model": copy.name})
                self._end(key)

    async def aclose(self) -> None:
        """End all calls and copies."""
        await self._calls.aclose()
        for key in list(self._copies):
            self._end(key)
        while len(self._tasks):
            await self._tasks.ended()

    def _lacks(self, order: CopyOrder) -> str | None:
        """Return what the executor has too little of, if it does."""
        orders = [copy.order for copy in self._copies.values()]
        cores = self._cores - sum(each.cores for each in orders)
        if order.cores > cores:
            return f"{order.cores} cores are needed, {cores} of {self._cores} are free for models"
        gpus = self._gpus - sum(each.gpus for each in orders)
        if order.gpus > gpus:
            return f"{order.gpus} GPUs are needed, {gpus} of {self._gpus} are free"
        if order.memory_bytes and not self._memory.take_bytes(order.memory_bytes):
            needed, limit = order.memory_bytes >> 20, (self._memory.limit_bytes or 0) >> 20
            return f"{needed} MiB of memory are needed, fewer of {limit} MiB are free"
        return None

    def _begin(self, order: CopyOrder) -> _Copy:
        taken = {number for copy in self._copies.values() for number in copy.gpus}
        free = [number for number in range(self._gpus) if number not in taken]
        copy = _Copy(order, tuple(free[: order.gpus]), Cooldown(_AGAIN))
        self._copies[order.spec.key] = copy
        self._spawn(copy)
        return copy

    def _check(self, copy: _Copy) -> None:
        """Load a copy whose process has ended; until then, calls go to other copies."""
        if copy.state == "ready" and self._copies.get(copy.order.spec.key) is copy:
            self._spawn(copy)

    def _spawn(self, copy: _Copy) -> None:
        copy.state = "loading"
        copy.loading = self._tasks.spawn(self._load(copy), "load a model", model=copy.name)

    async def _load(self, copy: _Copy) -> None:
        try:
            if copy.model is None:
                room = HostRoom(self._folder, copy.gpus)
                copy.model = await asyncio.to_thread(copy.order.spec.build, room)
            copy.facts = await copy.model.load()
        except CarawayError as exc:
            error = exc if isinstance(exc, ModelError) else ModelError(exc.message)
            self._failed(copy, error)
        except Exception:
            logger.exception("model failed", extra={"model": copy.name})
            self._failed(copy, ModelError(f"model '{copy.name}': internal error; the log of its "
                                          "executor has the cause"))  # fmt: skip
        else:
            copy.state, copy.error = "ready", None
            copy.cooldown.succeeded()
            logger.info("model ready", extra={"model": copy.name})

    def _failed(self, copy: _Copy, error: ModelError) -> None:
        logger.warning("model failed", extra={"model": copy.name, "code": error.code,
                       "reason": error.message})  # fmt: skip
        copy.state, copy.error = "failed", error
        copy.cooldown.failed()

    def _end(self, key: str) -> None:
        copy = self._copies.pop(key)
        self._memory.give(copy.order.memory_bytes)
        self._tasks.spawn(self._ended(copy), "end a model", model=copy.name)

    async def _ended(self, copy: _Copy) -> None:
        if copy.loading is not None and not copy.loading.done():
            copy.loading.cancel()
            await asyncio.wait((copy.loading,))
        if copy.model is not None:
            await copy.model.aclose()


def _refused(reason: str) -> CopyStatus:
    return CopyStatus("refused", error=ModelAwayError(reason))
