"""Opens a real state store for jobs: SQLite, or a Valkey server for these tests."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from caraway_core.protocols.state import StateStore
from caraway_plugins.stores.redis import RedisStateStore
from caraway_plugins.stores.sqlite import SqliteStateStore
from tests.kit import valkey
from tests.kit.clocks import Clock

POLL_S = 0.01
Opening = Callable[[], AbstractAsyncContextManager[StateStore]]
"""Opens the store of a test; it can be opened repeatedly."""


@pytest.fixture(scope="package")
def valkey_url() -> Iterator[str]:
    with valkey.serving() as server:
        yield server.url


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "redis"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Opening:
    make: Callable[[], StateStore]
    if request.param == "redis":
        url = f"{request.getfixturevalue('valkey_url')}?prefix={tmp_path}"

        def make() -> StateStore:
            return RedisStateStore(url, clock, poll_s=POLL_S)
    else:

        def make() -> StateStore:
            return SqliteStateStore(tmp_path / "state.db", clock, poll_s=POLL_S)

    @asynccontextmanager
    async def opening() -> AsyncIterator[StateStore]:
        store = make()
        try:
            yield store
        finally:
            await store.aclose()

    return opening
