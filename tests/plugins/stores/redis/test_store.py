"""Prefixes, pages of changes, connections and closing of the store in a real server."""

import asyncio
import gc
import os
import signal

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import CarawayError, ShuttingDownError
from caraway_plugins.stores.redis import RedisStateStore, store
from tests.kit import valkey

WAIT_S = 60.0
POLL_S = 0.01
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)


def connections(server: valkey.Server) -> int:
    """Return the number of clients of the server, besides the one that asks."""
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        return len(client.client_list()) - 1


@given(prefix=TEXT, ending=TEXT, other=TEXT)
def test_a_range_holds_the_texts_with_its_prefix_and_no_others(
    prefix: str, ending: str, other: str
) -> None:
    end = store._end_of(prefix)

    def is_in(text: str) -> bool:
        low = text.encode()
        return low >= prefix.encode() and (not end or low < end)

    assert is_in(prefix + ending)
    assert is_in(other) == other.startswith(prefix)


@pytest.mark.parametrize(
    "keys",
    [
        ["a/1", "a/10", "a/2", "b", "a0", "a.", "A/1"],
        ["\x00", "\x00\x00", "\x7f", "\x80", "ÿ", "\U0010ffff", "\uffff"],
        ["a b", "a\nb", 'a"b', "a'b", "a*b", "a[b]", "a\\b", "{a}"],
        ["-", "+", "(", "[", "-inf", "+inf", "nan", "0"],
    ],
)
async def test_keys_of_any_text_are_kept_apart_and_sorted(
    server: valkey.Server, keys: list[str]
) -> None:
    state = RedisStateStore(server.url)
    for key in keys:
        assert await state.compare_and_set(key, key.encode() + b"\x00", expected=None)
    found = await state.scan("")
    assert [each.key for each in found] == sorted(keys, key=str.encode)
    assert all(each.value == each.key.encode() + b"\x00" for each in found)
    for key in keys:
        entry = await state.get(key)
        assert entry is not None and entry.value == key.encode() + b"\x00"
        assert [each.key for each in await state.scan(key)] == sorted(
            (each for each in keys if each.startswith(key)), key=str.encode
        )
    await state.aclose()


@pytest.mark.parametrize("ttl_s", [0.0, -1.0])
async def test_an_entry_that_is_written_expired_is_never_there(
    server: valkey.Server, ttl_s: float
) -> None:
    state = RedisStateStore(server.url)
    assert await state.compare_and_set("key", b"x", expected=None, ttl_s=ttl_s)
    assert await state.get("key") is None
    assert await state.scan("") == []
    assert list(await state.revisions(["key"])) == [0]
    assert await state.compare_and_set("key", b"y", expected=None)
    await state.aclose()


@pytest.mark.parametrize(
    ("start", "limit", "expected"),
    [(0, 0, 0), (0, -1, 0), (0, 3, 3), (8, 5, 2), (10, 5, 0), (10**9, 1, 0)],
)
async def test_pages_of_a_log(server: valkey.Server, start: int, limit: int, expected: int) -> None:
    state = RedisStateStore(server.url)
    for number in range(10):
        await state.append("log", b"%d" % number)
    found = await state.read_log("log", start, limit)
    assert list(found) == [b"%d" % (start + number) for number in range(expected)]
    await state.aclose()


async def test_a_watcher_reads_many_changes_in_pages_each_once(server: valkey.Server) -> None:
    state = RedisStateStore(server.url, poll_s=POLL_S)
    watcher = state.watch("a/")
    await state.get("nothing")
    # More than one page, between changes of other keys.
    names = [f"{'a' if number % 3 else 'b'}/{number:04}" for number in range(1000)]
    await asyncio.gather(*(state.compare_and_set(name, b"x", expected=None) for name in names))
    wanted = [name for name in names if name.startswith("a/")]
    found = [await asyncio.wait_for(anext(watcher), WAIT_S) for _ in wanted]
    assert [each.key for each in found] == wanted
    assert [each.revision for each in found] == sorted({each.revision for each in found})
    await state.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(watcher)


async def test_a_watcher_passes_many_changes_that_are_not_its_own(server: valkey.Server) -> None:
    state = RedisStateStore(server.url, poll_s=POLL_S)
    watcher = state.watch("mine/")
    await state.get("nothing")
    others = (state.compare_and_set(f"o/{number}", b"x", expected=None) for number in range(4200))
    await asyncio.gather(*others)
    await state.compare_and_set("mine/1", b"1", expected=None)
    entry = await asyncio.wait_for(anext(watcher), WAIT_S)
    assert (entry.key, entry.value) == ("mine/1", b"1")
    await state.aclose()


async def test_a_watcher_that_missed_forgotten_deletions_says_so(server: valkey.Server) -> None:
    now = [1_000.0]
    state = RedisStateStore(server.url, lambda: now[0], poll_s=POLL_S)
    watcher = state.watch("a")
    revision = await state.compare_and_set("a", b"1", expected=None)
    await state.compare_and_set("a", None, expected=revision)
    assert [(await anext(watcher)).value] == [b""]
    revision = await state.compare_and_set("a", b"2", expected=None)
    await state.compare_and_set("a", None, expected=revision)
    now[0] += 3601
    with pytest.raises(CarawayError, match=r"watcher of 'a'.*missed deletions.*new watch"):
        await anext(watcher)
    await state.aclose()


async def test_watchers_that_nobody_reads_are_not_kept(server: valkey.Server) -> None:
    state = RedisStateStore(server.url)
    for _ in range(50):
        state.watch("a")
    await state.get("a")
    gc.collect()
    assert len(state._watchers) == 0
    await state.aclose()


async def test_a_closed_store_has_no_connections_and_refuses_work(server: valkey.Server) -> None:
    state = RedisStateStore(server.url)
    await asyncio.gather(*(state.get(f"{number}") for number in range(20)))
    assert connections(server) > 0
    await state.aclose()
    assert connections(server) == 0
    with pytest.raises(ShuttingDownError, match="is closed"):
        await state.get("a")
    with pytest.raises(ShuttingDownError, match="is closed"):
        state.watch("a")
    await state.aclose()


async def test_closing_that_is_cancelled_twice_closes_the_connections(
    server: valkey.Server,
) -> None:
    state = RedisStateStore(server.url)
    await state.append("log", b"0")
    os.kill(server.pid, signal.SIGSTOP)
    read = asyncio.ensure_future(state.get("a"))
    write = asyncio.ensure_future(state.append("log", b"1"))
    for _ in range(20):
        await asyncio.sleep(0)
    closing = asyncio.ensure_future(state.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    closing.cancel()
    _, waiting = await asyncio.wait((closing, read, write), timeout=WAIT_S)
    assert not waiting and closing.cancelled()
    assert isinstance(read.exception(), ShuttingDownError)
    assert write.exception() is not None
    os.kill(server.pid, signal.SIGCONT)
    async with asyncio.timeout(WAIT_S):
        while connections(server):
            await asyncio.sleep(0.01)


async def test_an_empty_value_is_refused_and_named(server: valkey.Server) -> None:
    state = RedisStateStore(server.url)
    with pytest.raises(ValueError, match="key 'jobs/1': an empty value stands for a deletion"):
        await state.compare_and_set("jobs/1", b"", expected=None)
    assert await state.scan("") == []
    await state.aclose()
