"""Shares one model among requests: bounded, fair, and in threads.

A request is cut into slices, and requests take turns, so that a short one never waits for all of a
long one. Slices of several requests go to a remote model together, since each call costs a round
trip.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.errors import ModelAwayError, ModelInputError, OverloadedError
from caraway_core.protocols.embedding import EmbeddedTexts, Embedder

Items = Sequence[str] | Sequence[Sequence[int]]
_SLICE = 16
_MOST_TOGETHER = 64
_AWAY_S = 1


@dataclass(slots=True, eq=False)
class _Request:
    """A request, and the progress of its slices."""

    items: Items
    is_tokens: bool
    dimensions: int | None
    answer: "asyncio.Future[EmbeddedTexts]"
    begun: int = 0
    done: dict[int, EmbeddedTexts] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[bool, int | None]:
        return self.is_tokens, self.dimensions

    def next(self, most: int) -> "_Slice":
        """Return the next slice."""
        first = self.begun
        self.begun = min(first + most, len(self.items))
        return _Slice(self, first, self.begun)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Some items of a request."""

    request: _Request
    first: int
    end: int

    @property
    def items(self) -> Items:
        return self.request.items[self.first : self.end]


class BatchedModel:
    """Calls one model for many requests. One event loop uses it."""

    def __init__(
        self, name: str, embedder: Embedder, threads: ThreadPoolExecutor, most_waiting: int
    ) -> None:
        """Take the number of texts that may wait, and the threads that calls run in."""
        self._name = name
        self._embedder = embedder
        self._threads = threads
        self._most_waiting = most_waiting
        self._calls_at_once = 4 if embedder.is_remote else 1
        self._calls = 0
        self._waiting: deque[_Request] = deque()
        self.waiting_texts = 0
        self._tasks = tasks.Tasks()

    async def embed(
        self, items: Items, is_tokens: bool = False, dimensions: int | None = None
    ) -> EmbeddedTexts:
        """Embed texts, or texts as tokens.

        Raises:
            OverloadedError: too many texts wait already.
            ModelError: the call failed.
        """
        if self.waiting_texts and self.waiting_texts + len(items) > self._most_waiting:
            raise OverloadedError(
                f"{self.waiting_texts} texts wait for embedding model '{self._name}'; "
                "send the request again later",
                _AWAY_S,
            )
        answer: asyncio.Future[EmbeddedTexts] = asyncio.get_running_loop().create_future()
        request = _Request(items, is_tokens, dimensions, answer)
        self.waiting_texts += len(items)
        self._waiting.append(request)
        self._go_on()
        try:
            return await answer
        finally:
            self.waiting_texts -= len(items)

    async def aclose(self) -> None:
        """End the calls under way; the requests may be sent again."""
        await self._tasks.aclose()
        for request in self._waiting:
            if not request.answer.done():
                request.answer.set_exception(self._replaced())
        self._waiting.clear()

    def _replaced(self) -> ModelAwayError:
        return ModelAwayError(
            f"embedding model '{self._name}' is being replaced; try again", "unavailable", 1
        )

    def _go_on(self) -> None:
        while self._calls < self._calls_at_once and (slices := self._next()):
            self._calls += 1
            self._tasks.spawn(self._call(slices), "embed texts", model=self._name)

    def _next(self) -> list[_Slice]:
        """Take the slices of the next call: one of each waiting request, in turn."""
        slices: list[_Slice] = []
        others: list[_Request] = []
        begun: list[_Request] = []
        left = _MOST_TOGETHER if self._embedder.is_remote else _SLICE
        while self._waiting and left > 0:
            request = self._waiting.popleft()
            if request.answer.done():
                continue  # Its caller went away, or an earlier slice failed.
            if slices and request.kind != slices[0].request.kind:
                others.append(request)
                continue
            share = max(1, left // (len(self._waiting) + 1))
            slices.append(request.next(min(_SLICE, share)))
            left -= len(slices[-1].items)
            if request.begun < len(request.items):
                begun.append(request)
        self._waiting.extendleft(reversed(others))
        self._waiting.extend(begun)
        return slices

    async def _call(self, slices: Sequence[_Slice]) -> None:
        try:
            await self._answered(slices)
        finally:
            self._calls -= 1
            self._go_on()

    async def _answered(self, slices: Sequence[_Slice]) -> None:
        try:
            texts = await self._embedded(slices)
        except ModelInputError as exc:
            if len(slices) > 1:  # The input of one request is no fault of the others.
                for each in slices:
                    await self._answered([each])
                return
            _fail(slices, exc)
        except BaseException as exc:
            is_end = tasks.ends(exc)
            _fail(slices, self._replaced() if is_end else exc)
            if is_end:
                raise
        else:
            for each, part in zip(slices, _parts(texts, slices), strict=True):
                _add(each, part)

    async def _embedded(self, slices: Sequence[_Slice]) -> EmbeddedTexts:
        first = slices[0].request
        items = [item for each in slices for item in each.items]
        call = self._embedder.embed_tokens if first.is_tokens else self._embedder.embed
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, call, items, first.dimensions)  # type: ignore[arg-type]  # the kind of the items is that of the call


def _fail(slices: Sequence[_Slice], exc: BaseException) -> None:
    for each in slices:
        if not each.request.answer.done():
            each.request.answer.set_exception(exc)


def _parts(texts: EmbeddedTexts, slices: Sequence[_Slice]) -> list[EmbeddedTexts]:
    """Divide the vectors among slices, and the tokens by the length of the texts."""
    if len(slices) == 1:
        return [texts]
    lengths = [sum(map(len, each.items)) for each in slices]
    parts, first, used = [], 0, 0
    passed, total = 0, max(1, sum(lengths))
    for each, length in zip(slices, lengths, strict=True):
        count = each.end - each.first
        passed += length
        until = texts.token_count * passed // total
        parts.append(EmbeddedTexts(texts.vectors.slice(first, count), until - used))
        first, used = first + count, until
    return parts


def _add(each: _Slice, part: EmbeddedTexts) -> None:
    request = each.request
    request.done[each.first] = part
    if sum(len(done.vectors) for done in request.done.values()) < len(request.items):
        return
    if request.answer.done():
        return
    ordered = [request.done[first] for first in sorted(request.done)]
    vectors = pa.concat_arrays([done.vectors for done in ordered])
    tokens = sum(done.token_count for done in ordered)
    request.answer.set_result(EmbeddedTexts(vectors, tokens))
