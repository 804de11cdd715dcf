"""Requests that share a model."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from caraway_assist.embeddings.batching import BatchedModel
from caraway_core.errors import ModelAwayError, ModelInputError, OverloadedError
from caraway_core.protocols.embedding import EmbeddedTexts
from tests.kit.embedders import FakeEmbedder


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def firsts(found: EmbeddedTexts) -> list[float]:
    return [row[0] for row in found.vectors.to_pylist()]


async def test_a_long_request_is_cut_and_joined_in_order(threads: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    batched = BatchedModel("m", embedder, threads, 1000)
    texts = ["x" * size for size in range(1, 101)]
    found = await batched.embed(texts)
    assert firsts(found) == [float(size) for size in range(1, 101)]
    assert found.token_count == sum(range(1, 101))
    assert [len(call) for call in embedder.calls] == [16, 16, 16, 16, 16, 16, 4]
    assert batched.waiting_texts == 0
    assert len((await batched.embed(["a"], dimensions=7)).vectors[0]) == 7
    assert firsts(await batched.embed([[1, 2, 3]], is_tokens=True)) == [3.0]


async def test_a_short_request_does_not_wait_for_all_of_a_long_one(
    threads: ThreadPoolExecutor,
) -> None:
    embedder = FakeEmbedder()
    embedder.gate.clear()
    batched = BatchedModel("m", embedder, threads, 1000)
    long = asyncio.ensure_future(batched.embed(["long"] * 64))
    await asyncio.sleep(0)
    short = asyncio.ensure_future(batched.embed(["short"]))
    await asyncio.sleep(0)
    embedder.gate.set()
    await short
    await long
    # The first slice was under way; the short request shares the next one.
    assert embedder.calls[1] == [*["long"] * 8, "short"]
    assert sum(map(len, embedder.calls)) == 65


async def test_requests_to_a_remote_model_go_together(threads: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder(is_remote=True)
    embedder.gate.clear()
    batched = BatchedModel("m", embedder, threads, 1000)
    blocking = [asyncio.ensure_future(batched.embed(["blocked"])) for _ in range(4)]
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(batched.embed(["x" * size])) for size in range(1, 21)]
    shorter = asyncio.ensure_future(batched.embed(["x"], dimensions=1))
    await asyncio.sleep(0)
    embedder.gate.set()
    found = await asyncio.gather(*others)
    await asyncio.gather(*blocking, shorter)
    assert [firsts(each) for each in found] == [[float(size)] for size in range(1, 21)]
    assert sum(each.token_count for each in found) == sum(range(1, 21))
    # A request for other dimensions goes alone.
    assert sorted(map(len, embedder.calls)) == [1, 1, 1, 1, 1, 20]


async def test_a_wrong_input_fails_alone(threads: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder(is_remote=True)
    embedder.refusal = ModelInputError("too long")
    embedder.gate.clear()
    batched = BatchedModel("m", embedder, threads, 1000)
    blocking = [asyncio.ensure_future(batched.embed(["blocked"])) for _ in range(4)]
    await asyncio.sleep(0)
    good = asyncio.ensure_future(batched.embed(["good"]))
    bad = asyncio.ensure_future(batched.embed(["bad"]))
    await asyncio.sleep(0)
    embedder.gate.set()
    await asyncio.gather(*blocking)
    assert firsts(await good) == [4.0]
    with pytest.raises(ModelInputError, match="too long"):
        await bad
    assert ["good", "bad"] in embedder.calls


async def test_a_failure_ends_the_whole_request(threads: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    embedder.fails = ModelAwayError("away")
    batched = BatchedModel("m", embedder, threads, 1000)
    with pytest.raises(ModelAwayError, match="away"):
        await batched.embed(["x"] * 100)
    assert len(embedder.calls) == 1
    embedder.fails = None
    assert firsts(await batched.embed(["abc"])) == [3.0]


async def test_the_queue_is_bounded(threads: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    embedder.gate.clear()
    batched = BatchedModel("m", embedder, threads, 10)
    first = asyncio.ensure_future(batched.embed(["x"] * 50))
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError, match="50 texts wait for embedding model 'm'") as caught:
        await batched.embed(["x"])
    assert caught.value.retry_after_s == 1
    embedder.gate.set()
    assert len((await first).vectors) == 50
    assert len((await batched.embed(["x"])).vectors) == 1


async def test_a_caller_that_goes_away_leaves_no_work(threads: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    embedder.gate.clear()
    batched = BatchedModel("m", embedder, threads, 1000)
    gone = asyncio.ensure_future(batched.embed(["x"] * 64))
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    embedder.gate.set()
    await batched.embed(["y"])
    assert [len(call) for call in embedder.calls] == [16, 1]
    assert batched.waiting_texts == 0


async def test_the_end_of_the_model_ends_its_requests(threads: ThreadPoolExecutor) -> None:
    embedder = FakeEmbedder()
    embedder.gate.clear()
    batched = BatchedModel("m", embedder, threads, 1000)
    first, second = (asyncio.ensure_future(batched.embed(["x"] * 20)) for _ in range(2))
    await asyncio.sleep(0)
    await batched.aclose()
    embedder.gate.set()
    for each in (first, second):
        with pytest.raises(ModelAwayError, match="'m' is being replaced; try again"):
            await each
