"""The order of calls, calls that are cancelled, and servers that stop being the primary."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.connection import Connection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from caraway_core.errors import CarawayError, ShuttingDownError, StateAwayError, StateUnsureError
from caraway_plugins.stores.redis import RedisStateStore, address, lane
from caraway_plugins.stores.redis import store as redis_store
from caraway_plugins.stores.redis.lane import RedisLane
from tests.kit import proxies, valkey

WAIT_S = 60.0
READ = ("read_log", "log", 0, -1)


@asynccontextmanager
async def opened(server: valkey.Server) -> AsyncIterator[RedisLane]:
    # As the client of the store, which retries nothing by itself.
    client = Redis(
        unix_socket_path=str(server.socket), socket_timeout=0.5, retry=Retry(NoBackoff(), 0)
    )
    try:
        yield RedisLane(client, address.parse(server.url), None)
    finally:
        await client.aclose()


def paused(server: valkey.Server) -> None:
    """Let the server answer nothing until it is resumed."""
    os.kill(server.pid, signal.SIGSTOP)


def resumed(server: valkey.Server) -> None:
    os.kill(server.pid, signal.SIGCONT)


async def in_flight(line: RedisLane, record: bytes) -> "asyncio.Task[int]":
    """Begin a call, and wait until it was taken from the queue."""
    call = asyncio.ensure_future(line.run_call("append", "log", record))
    await asyncio.sleep(0)
    while line._queue:
        await asyncio.sleep(0)
    return call


async def test_calls_keep_their_order_over_many_batches(server: valkey.Server) -> None:
    async with opened(server) as line:
        calls = [line.submit("append", "log", b"%d" % number) for number in range(500)]
        offsets = [await line.outcome(call) for call in calls]
        assert offsets == list(range(500))
        assert await line.run_call(*READ) == [b"%d" % number for number in range(500)]


async def test_a_submitted_call_is_sent_when_any_later_one_is_awaited(
    server: valkey.Server,
) -> None:
    async with opened(server) as line:
        first = line.submit("append", "log", b"first")
        await asyncio.sleep(0)
        assert not first.running()
        assert await line.run_call("append", "log", b"second") == 1
        assert first.result(0) == 0


async def test_a_call_cancelled_in_the_queue_is_never_sent(server: valkey.Server) -> None:
    async with opened(server) as line:
        await line.run_call("append", "log", b"0")
        paused(server)
        first = await in_flight(line, b"1")
        second = asyncio.ensure_future(line.run_call("append", "log", b"2"))
        third = asyncio.ensure_future(line.run_call("append", "log", b"3"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait((second,))
        resumed(server)
        assert [await first, await third] == [1, 2]
        assert await line.run_call(*READ) == [b"0", b"1", b"3"]


async def test_a_call_cancelled_in_flight_spoils_no_other_call(server: valkey.Server) -> None:
    async with opened(server) as line:
        await line.run_call("append", "log", b"0")
        paused(server)
        first = await in_flight(line, b"1")
        other = asyncio.ensure_future(line.run_call("append", "log", b"2"))
        first.cancel()
        await asyncio.wait((first,))
        assert first.cancelled()
        resumed(server)
        assert await other == 2
        assert await line.run_call(*READ) == [b"0", b"1", b"2"]


async def test_a_failed_call_fails_alone(server: valkey.Server) -> None:
    async with opened(server) as line:
        server.command("SET", "caraway:log:broken", "a text, not a list")
        good = line.submit("append", "log", b"1")
        bad = line.submit("append", "broken", b"1")
        also_good = line.submit("append", "log", b"2")
        with pytest.raises(CarawayError, match=r"state store unix://.*WRONGTYPE"):
            await line.outcome(bad)
        assert [await line.outcome(good), await line.outcome(also_good)] == [0, 1]


async def test_too_many_waiting_calls_are_refused_with_the_reason(
    server: valkey.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "_MOST_QUEUED", 3)
    async with opened(server) as line:
        calls = [line.submit("append", "log", b"x") for _ in range(3)]
        with pytest.raises(CarawayError, match=r"unix://.*3 calls are already waiting.*too slow"):
            line.submit("append", "log", b"x")
        assert [await line.outcome(call) for call in calls] == [0, 1, 2]
        assert await line.run_call("append", "log", b"x") == 3


async def test_closing_finishes_what_waits_and_refuses_the_rest(server: valkey.Server) -> None:
    async with opened(server) as line:
        calls = [line.submit("append", "log", b"%d" % number) for number in range(300)]
        await line.aclose()
        assert [call.result(0) for call in calls] == list(range(300))
        with pytest.raises(ShuttingDownError, match=r"state store unix://.* is closed"):
            line.submit("append", "log", b"late")
        await line.aclose()


@pytest.mark.parametrize("is_running", [True, False])
async def test_closing_that_is_cancelled_leaves_no_caller_waiting(
    server: valkey.Server, is_running: bool
) -> None:
    async with opened(server) as line:
        await line.run_call("append", "log", b"0")
        paused(server)
        first = await in_flight(line, b"1") if is_running else None
        # More than one batch, so that some are still in the queue.
        others = [asyncio.ensure_future(line.run_call("append", "log", b"x")) for _ in range(200)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(line.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        calls = [*others, first] if first else others
        done, waiting = await asyncio.wait((closing, *calls), timeout=WAIT_S)
        resumed(server)
        assert not waiting
        assert closing.cancelled()
        # Those that were sent may have been applied.
        known = (ShuttingDownError, StateUnsureError)
        assert all(isinstance(each.exception(), known) for each in done - {closing})


async def test_a_write_after_a_failover_reaches_the_new_primary() -> None:
    """The address leads to another server, while the old one lives on as its replica."""
    with valkey.serving() as old, valkey.serving(tcp=True) as new:
        async with proxies.proxying(old.socket) as proxy:
            url = f"redis://127.0.0.1:{proxy.port}"
            store = RedisStateStore(url)
            revision = await store.compare_and_set("key", b"old", expected=None)
            host, port = new.tcp_url.removeprefix("redis://").split(":")
            proxy._socket = new.socket
            old.command("REPLICAOF", host, port)
            # The old server answers on the connections that are open, but takes no writes.
            assert await store.append("log", b"1") == 0
            assert await store.get("key") is None
            assert revision is not None
            with suppress(StateUnsureError):
                await store.compare_and_set("key", b"new", expected=None)
            found = await store.get("key")
            assert found is not None and found.value == b"new"
            await store.aclose()
            # A replica that cannot reach its primary takes seconds to stop.
            old.kill()
        again = RedisStateStore(new.url)
        assert await again.read_log("log", 0, 10) == [b"1"]
        await again.aclose()


@pytest.mark.parametrize("operation", ["append", "compare_and_set"])
async def test_a_server_that_stays_a_replica_is_told_and_the_write_is_not_done(
    server: valkey.Server, operation: str
) -> None:
    server.command("REPLICAOF", "127.0.0.1", "1")
    store = RedisStateStore(server.url)
    with pytest.raises(StateAwayError, match="is a replica: set the primary in the URL") as caught:
        if operation == "append":
            await store.append("log", b"x")
        else:
            await store.compare_and_set("key", b"x", expected=None)
    # Nothing was applied, and the caller may know that.
    assert caught.type is StateAwayError
    server.command("REPLICAOF", "NO", "ONE")
    assert await store.append("log", b"x") == 0
    await store.aclose()


async def test_a_host_that_vanished_costs_one_wait_for_all_connections(
    server: valkey.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_store, "ANSWER_S", 0.3)
    async with proxies.proxying(server.socket) as proxy:
        store = RedisStateStore(f"redis://127.0.0.1:{proxy.port}")
        # Writes and reads have a connection each.
        await asyncio.gather(store.append("log", b"0"), store.get("key"))
        assert proxy.connections == 2
        proxy.silence()
        with suppress(StateUnsureError):
            await store.append("log", b"1")
        found, _ = await asyncio.gather(store.read_log("log", 0, 1), store.append("log", b"2"))
        assert found == [b"0"]
        await store.aclose()
    assert proxy.swallowed == 1


async def test_connections_over_tcp_notice_a_host_that_vanished() -> None:
    with valkey.serving(tcp=True) as server:
        store = RedisStateStore(server.tcp_url)
        await store.get("key")
        pool: Any = store._client.connection_pool
        connection = await pool.get_connection()
        assert isinstance(connection, Connection) and connection._writer is not None
        end = connection._writer.get_extra_info("socket")
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle_s, each_s, count = (
            end.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle_s + each_s * count <= 10
        assert 0 < end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 10_000
        await pool.release(connection)
        await store.aclose()
