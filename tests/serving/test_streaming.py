"""Bodies as they go out: their parts, their coding, and a client that goes away."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from caraway_serving import formats, streaming
from caraway_serving.codings import Coding
from caraway_serving.streaming import AnswerForm, BodySender, is_small, unless_gone

SCHEMA = pa.schema({"n": pa.int64()})


class Wire:
    """The messages that a server received for sending."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.counted: list[int] = []

    async def send(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def headers(self) -> dict[str, str]:
        found = [(k.decode(), v.decode()) for k, v in self.messages[0]["headers"]]
        assert len(found) == len(dict(found)), "a header is sent twice"
        return dict(found)

    @property
    def parts(self) -> list[bytes]:
        return [message["body"] for message in self.messages[1:]]

    @property
    def is_whole(self) -> bool:
        return self.messages[-1].get("more_body") is False

    def body(self) -> bytes:
        """Return the body as a client reads it."""
        sent = b"".join(self.parts)
        coding = self.headers.get("content-encoding", "identity")
        if coding == "gzip":
            return gzip.decompress(sent)
        if coding == "zstd":
            return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(sent))
        return sent


def sender(
    wire: Wire, coding: Coding = "identity", headers: Mapping[str, str] | None = None
) -> BodySender:
    form = AnswerForm("application/json", coding, wire.counted.append, headers or {})
    return BodySender(form, wire.send)


async def batches(*counts: int) -> AsyncIterator[pa.RecordBatch]:
    first = 0
    for count in counts:
        yield pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})
        first += count


async def sent(wire: Wire, coding: Coding, *counts: int) -> None:
    encoder = formats.make("ndjson")
    await sender(wire, coding).rows(
        encoder, encoder.encode_start(SCHEMA), batches(*counts), lambda: 7
    )


def numbers(body: bytes) -> list[int]:
    return [json.loads(line)["n"] for line in body.splitlines()]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((), True), ((0, 0), True), ((1_024,), True), ((1_000, 24), True), ((1_000, 25), False)],
)
def test_rows_of_all_batches_together_decide_what_is_small(
    counts: tuple[int, ...], expected: bool
) -> None:
    made = [pa.record_batch({"n": pa.array([0] * count, pa.int64())}) for count in counts]
    assert is_small(made) is expected
    assert is_small(tuple(made)) is expected


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
@pytest.mark.parametrize("size", [0, 1, 1_024, 1_025, 100_000])
async def test_whole_body_says_its_length_and_is_compressed_only_if_large(
    coding: Coding, size: int
) -> None:
    wire = Wire()
    await sender(wire, coding).whole(b"x" * size)
    assert wire.body() == b"x" * size
    assert len(wire.parts) == 1 and wire.is_whole
    assert wire.headers["content-length"] == str(len(wire.parts[0]))
    assert ("content-encoding" in wire.headers) == (coding != "identity" and size > 1_024)
    assert wire.counted == [len(wire.parts[0])], "the bytes on the wire are counted"


async def test_headers_of_the_form_are_sent_in_lower_case_beside_the_type() -> None:
    wire = Wire()
    await sender(wire, headers={"X-Cache": "hit", "Vary": "Accept"}).whole(b"{}")
    assert wire.messages[0]["status"] == 200
    assert wire.headers == {
        "content-type": "application/json",
        "x-cache": "hit",
        "vary": "Accept",
        "content-length": "2",
    }


async def test_one_sender_leaves_the_headers_of_its_form_alone() -> None:
    wire, own = Wire(), {"x-a": "b"}
    form = AnswerForm("text/csv", "gzip", wire.counted.append, own)
    await BodySender(form, wire.send).whole(b"y" * 5_000)
    assert own == {"x-a": "b"}


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
@settings(max_examples=12, derandomize=True)
@given(counts=st.lists(st.sampled_from([0, 1, 5, 1_024, 1_025, 3_000, 20_000]), max_size=5))
def test_rows_arrive_once_and_in_order_whatever_the_batches(
    coding: Coding, counts: list[int]
) -> None:
    wire = Wire()
    asyncio.run(sent(wire, coding, *counts))
    assert numbers(wire.body()) == list(range(sum(counts)))
    assert wire.is_whole and "content-length" not in wire.headers
    assert [message.get("more_body") for message in wire.messages[1:-1]] == [True] * (
        len(wire.messages) - 2
    )
    assert sum(wire.counted) == len(b"".join(wire.parts))


async def test_many_small_batches_leave_in_large_parts() -> None:
    wire = Wire()
    await sent(wire, "identity", *[10] * 2_000)
    assert len(wire.parts) > 1
    assert all(len(part) >= 64 * 1024 for part in wire.parts[:-1])


async def test_large_batch_is_encoded_beside_the_loop_and_a_small_one_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beside: list[int] = []

    async def to_thread(work: Callable[[], bytes]) -> bytes:
        beside.append(1)
        return work()

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    await sent(Wire(), "identity", 1_024, 0, 1)
    assert beside == []
    await sent(Wire(), "identity", 1_025)
    assert beside == [1]


async def test_answer_whose_rows_fail_stays_without_an_end() -> None:
    async def broken() -> AsyncIterator[pa.RecordBatch]:
        async for batch in batches(30_000):
            yield batch
        raise OSError("an executor was lost")

    wire, encoder = Wire(), formats.make("json")
    with pytest.raises(OSError, match="lost"):
        await sender(wire).rows(encoder, encoder.encode_start(SCHEMA), broken(), lambda: 0)
    assert len(wire.parts) == 1 and not wire.is_whole
    assert not wire.parts[0].endswith(b"]")


async def test_rows_are_not_read_ahead_of_a_slow_client() -> None:
    read, gate = [], asyncio.Event()

    async def counted() -> AsyncIterator[pa.RecordBatch]:
        async for batch in batches(20_000, 20_000, 20_000):
            read.append(batch.num_rows)
            yield batch

    async def slow(message: Message) -> None:
        if message["type"] == "http.response.body":
            await gate.wait()

    encoder = formats.make("ndjson")
    form = AnswerForm("application/x-ndjson", "identity", lambda _: None)
    sending = asyncio.ensure_future(BodySender(form, slow).rows(encoder, b"", counted(), lambda: 0))
    for _ in range(50):
        await asyncio.sleep(0)
    await asyncio.to_thread(lambda: None)
    assert read == [20_000] or not read
    gate.set()
    await sending
    assert read == [20_000] * 3


async def test_time_is_asked_for_when_the_last_row_has_been_sent() -> None:
    wire, encoder, seen = Wire(), formats.make("versioned"), []

    async def watched() -> AsyncIterator[pa.RecordBatch]:
        async for batch in batches(1, 1):
            seen.append("batch")
            yield batch

    def elapsed_ms() -> int:
        seen.append("time")
        return 4_321

    await sender(wire).rows(encoder, encoder.encode_start(SCHEMA), watched(), elapsed_ms)
    assert seen == ["batch", "batch", "time"]
    assert b"4321" in wire.body()


def request(receive: Callable[[], Awaitable[Any]]) -> Request:
    return Request({"type": "http", "headers": []}, receive)


async def never() -> Any:
    await asyncio.Event().wait()


async def test_work_that_ends_before_the_client_leaves_is_returned() -> None:
    async def work() -> str:
        return "rows"

    before = asyncio.all_tasks()
    assert await unless_gone(request(never), work()) == "rows"
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before, "nobody waits for the client any more"


async def test_failure_of_the_work_is_the_failure_of_the_wait() -> None:
    async def work() -> str:
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        await unless_gone(request(never), work())


async def test_client_that_leaves_cancels_the_work_and_waits_for_its_end() -> None:
    told = [{"type": "http.request", "body": b"x"}, {"type": "http.disconnect"}]
    steps: list[str] = []

    async def receive() -> Any:
        await asyncio.sleep(0)
        return told.pop(0)

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("closed")

    with pytest.raises(ClientDisconnect):
        await unless_gone(request(receive), work())
    assert steps == ["closed"] and told == []


async def test_work_done_in_the_moment_the_client_leaves_counts_as_done() -> None:
    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def work() -> int:
        return 1

    assert await unless_gone(request(receive), work()) == 1


async def test_cancelling_the_wait_cancels_the_work() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    before = asyncio.all_tasks()
    waiting = asyncio.ensure_future(unless_gone(request(never), work()))
    await began.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    assert ended.is_set() and asyncio.all_tasks() == before


async def test_disconnected_skips_all_else_that_the_client_says() -> None:
    told = ["http.request", "http.request", "http.disconnect", "http.request"]

    async def receive() -> Any:
        return {"type": told.pop(0)}

    await streaming.disconnected(receive)
    assert told == ["http.request"]
