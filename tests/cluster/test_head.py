"""A head whose Redis is not there yet."""

import logging
import socket

import pytest

from caraway_cluster import head
from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import GcsStore


async def test_redis_that_starts_late_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = iter([CarawayError("away"), CarawayError("away"), None])

    def require(_store: GcsStore) -> None:
        if (failure := next(tries)) is not None:
            raise failure

    monkeypatch.setattr(GcsStore, "require", require)
    with caplog.at_level(logging.WARNING):
        await head.wait_for(GcsStore("redis.test:6379"), pause_s=0)
    assert [record.message for record in caplog.records] == ["waits for the Redis"]
    assert next(tries, "all") == "all"


async def test_wait_for_redis_is_bounded_and_says_where_it_should_be() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # Nobody listens there.
        port = held.getsockname()[1]
        with pytest.raises(CarawayError, match=f"cannot reach the Redis at 127.0.0.1:{port}"):
            await head.wait_for(GcsStore(f"127.0.0.1:{port}"), patience_s=0)
