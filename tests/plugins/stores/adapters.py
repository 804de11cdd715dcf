"""The stores that the conformance suites run on; add a new adapter here."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caraway_core.loading import registry
from caraway_core.protocols.results import ResultStore
from caraway_core.protocols.state import StateStore
from caraway_core.tables import ResultPlace, StoreSpec
from caraway_plugins.stores.redis import RedisStateStore
from caraway_plugins.stores.sqlite import SqliteStateStore
from tests.kit import valkey

if TYPE_CHECKING:
    from tests.kit.s3 import S3Server

POLL_S = 0.01


@dataclass
class Clock:
    """A clock that only tests advance."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class StateHarness:
    """One location of state, which can be reopened, also by another process."""

    adapter: str
    folder: Path
    clock: Clock = field(default_factory=Clock)

    def make(self) -> StateStore:
        return make_state(self.adapter, self.folder, self.clock)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[StateStore]:
        store = self.make()
        try:
            yield store
        finally:
            await store.aclose()


def _sqlite(folder: Path, clock: Callable[[], float]) -> StateStore:
    return SqliteStateStore(folder / "state.db", clock, poll_s=POLL_S)


def _redis(folder: Path, clock: Callable[[], float]) -> StateStore:
    url = f"{os.environ[valkey.ENVIRON]}?prefix={folder}"
    return RedisStateStore(url, clock, poll_s=POLL_S)


STATE: dict[str, Callable[[Path, Callable[[], float]], StateStore]] = {
    "sqlite": _sqlite,
    "redis": _redis,
}
RESULTS = tuple(registry.RESULT_STORES)


def make_state(adapter: str, folder: Path, clock: Callable[[], float]) -> StateStore:
    return STATE[adapter](folder, clock)


def make_results(adapter: str, place: ResultPlace) -> ResultStore:
    store_class: Any = registry.RESULT_STORES.load(adapter)
    store: ResultStore = store_class.at(place)
    return store


def bucket_place(
    server: "S3Server", bucket: str, prefix: str = "jobs", **options: str
) -> ResultPlace:
    """Return a result place in a bucket of the server, which may not exist."""
    from tests.kit import s3  # Children that need no bucket start in half the time without it.

    signing_in = {
        "endpoint": server.endpoint,
        "region": s3.REGION,
        "access_key_id": s3.KEY,
        "secret_access_key": s3.SECRET,
        "allow_http": "true",
    }
    return ResultPlace("bucket", prefix, StoreSpec("s3", bucket, "results", signing_in | options))
