"""Pipelines calls of the store's script, in order, with many calls per round trip."""

import asyncio
import uuid
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import CarawayError, ShuttingDownError
from caraway_plugins.stores.redis import errors
from caraway_plugins.stores.redis.address import ServerAddress

GIVE_UP_S = 10.0
_DELAYS = Delays(0.02, 1.0)
_AT_ONCE = 128
_MOST_QUEUED = 10_000
_PARTS = ("values", "index", "changes", "expiries", "traces", "counters", "")
_SCRIPT = resources.files(__package__ or "").joinpath("state.lua").read_text()

_WRITES = frozenset({"compare_and_set", "append"})
Argument = str | bytes | int | float


@dataclass(frozen=True, slots=True)
class _Call:
    operation: str
    arguments: tuple[Argument, ...]
    outcome: Future[Any] = field(default_factory=Future)
    token: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(slots=True)
class _Batch:
    """Calls that are sent together, and retried until there are responses."""

    calls: Sequence[_Call]
    sent: int = 0


class RedisLane:
    """Runs calls in order of arrival.

    While the server is away, calls are retried for GIVE_UP_S. The server recognises the token of a
    write that was applied but not answered, and does not apply it twice.
    """

    def __init__(self, client: "Redis", address: ServerAddress, clock: SecondsClock | None) -> None:
        self._client = client
        self._address = address
        self._clock = clock
        self._keys = [address.prefix + part for part in _PARTS]
        self._queue: deque[_Call] = deque()
        self._tasks = tasks.Tasks()
        self._worker: asyncio.Task[None] | None = None
        self._sha = ""
        self._is_closed = False

    def submit(self, operation: str, *arguments: Argument) -> Future[Any]:
        """Add a call to the end of the queue, immediately and in the order of calls.

        Raises:
            ShuttingDownError: the lane is closed.
        """
        if self._is_closed:
            raise ShuttingDownError(f"state store {self._address.name} is closed")
        if len(self._queue) >= _MOST_QUEUED:
            raise CarawayError(
                f"state store {self._address.name}: {_MOST_QUEUED} calls are already waiting; "
                "the server is too slow or away"
            )
        call = _Call(operation, arguments)
        self._queue.append(call)
        return call.outcome

    async def run_call(self, operation: str, *arguments: Argument) -> Any:
        """Run a call and return its result. A call that is cancelled in the queue is never sent."""
        return await self.outcome(self.submit(operation, *arguments))

    async def outcome(self, future: Future[object]) -> Any:
        """Wait for a submitted call, and make sure that it is sent."""
        self._begin()
        return await asyncio.wrap_future(future)

    async def aclose(self) -> None:
        """Finish the queued calls and close the lane."""
        self._is_closed = True
        if self._queue:
            self._begin()
        if (worker := self._worker) is not None:
            try:
                # Not `await worker`: the client can swallow a cancellation that reaches it.
                await asyncio.wait((worker,))
            except asyncio.CancelledError:
                worker.cancel()
                self._refuse_waiting()
                raise

    def _refuse_waiting(self) -> None:
        while self._queue:
            for call in self._taken():
                failure = f"state store {self._address.name} was closed before the call"
                call.outcome.set_exception(ShuttingDownError(failure))

    def _begin(self) -> None:
        if self._worker is None or self._worker.done():
            self._worker = self._tasks.spawn(self._work(), "call the state store")

    async def _work(self) -> None:
        while self._queue:
            if batch := self._taken():
                await self._settle(_Batch(batch))

    def _taken(self) -> Sequence[_Call]:
        """Take the next calls of the queue that are not cancelled."""
        batch: list[_Call] = []
        while self._queue and len(batch) < _AT_ONCE:
            call = self._queue.popleft()
            if call.outcome.set_running_or_notify_cancel():
                batch.append(call)
        return batch

    async def _settle(self, batch: _Batch) -> None:
        try:
            answered = list(zip(batch.calls, await self._answers(batch), strict=True))
        except BaseException as exc:
            # Also if this task is cancelled, so that no caller waits forever.
            failure = exc if isinstance(exc, Exception) else ShuttingDownError("cancelled")
            for call in batch.calls:
                call.outcome.set_exception(_judged(failure, call, batch.sent))
            if not isinstance(exc, Exception):
                raise
            return
        for call, answer in answered:
            if isinstance(answer, Exception):
                # The server rejected the last attempt; earlier attempts may have been applied.
                failure = errors.explained(self._address.name, answer)
                call.outcome.set_exception(_judged(failure, call, batch.sent - 1))
            else:
                call.outcome.set_result(answer)

    async def _answers(self, batch: _Batch) -> Sequence[Any]:
        """Send the batch until there are responses.

        Raises:
            CarawayError: the server stays away; the writes may have been applied.
        """
        deadline = asyncio.get_running_loop().time() + GIVE_UP_S
        again = Backoff(_DELAYS)
        has_reconnected = False
        while True:
            try:
                answers = await self._send(batch)
                if not has_reconnected and any(errors.is_replica(one) for one in answers):
                    has_reconnected = True
                    if all(errors.is_replica(one) for one in answers):
                        batch.sent -= 1
                    await self._reconnect()
                    continue
                passing = next((one for one in answers if errors.is_passing(one)), None)
                if passing is None:
                    return answers
                if all(errors.is_passing(one) for one in answers):
                    batch.sent -= 1  # The server rejected the batch and applied none of it.
                failure: Exception = passing
            except (RedisError, OSError) as exc:
                if not errors.is_passing(exc):
                    raise errors.explained(self._address.name, exc) from exc
                failure = exc
                if isinstance(exc, RedisTimeoutError):
                    # The other connections lead to the same host, which may have vanished.
                    await self._reconnect()
            pause_s = again.failed()
            if self._is_closed or asyncio.get_running_loop().time() + pause_s > deadline:
                raise errors.explained(self._address.name, failure) from failure
            await asyncio.sleep(pause_s)

    async def _reconnect(self) -> None:
        """Leave a server that is silent or no longer the primary.

        The address may lead to another one now. Else every connection would stay, writes would fail
        and reads would be stale.
        """
        pool: Any = self._client.connection_pool
        await pool.update_active_connections_for_reconnect()
        await pool.disconnect(inuse_connections=False)

    async def _send(self, batch: _Batch) -> list[Any]:
        if not self._sha:
            self._sha = await self._client.script_load(_SCRIPT)
        answers = await self._execute(batch)
        if any(isinstance(answer, NoScriptError) for answer in answers):
            if all(isinstance(answer, NoScriptError) for answer in answers):
                # The server was restarted, and applied nothing of the batch.
                batch.sent -= 1
            self._sha = await self._client.script_load(_SCRIPT)
            answers = await self._execute(batch)
        return answers

    async def _execute(self, batch: _Batch) -> list[Any]:
        now = "" if self._clock is None else repr(self._clock())
        async with self._client.pipeline(transaction=False) as pipeline:
            for call in batch.calls:
                pipeline.evalsha(
                    self._sha, len(self._keys), *self._keys,
                    call.operation, now, call.token, *call.arguments,
                )  # fmt: skip
            # Separate from sending: an unreachable server has applied nothing.
            pool: Any = self._client.connection_pool
            pipeline.connection = await pool.get_connection()
            batch.sent += 1
            return await pipeline.execute(raise_on_error=False)


def _judged(failure: Exception, call: _Call, unanswered: int) -> Exception:
    """Return the error of a call after that many attempts without a response."""
    may_be_done = unanswered > 0 and call.operation in _WRITES
    if may_be_done and isinstance(failure, CarawayError):
        return errors.unsure(failure)
    return failure
