"""Compares a StateStore with a dict, with steps chosen by hypothesis."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from caraway_core.protocols.state import StateEntry, StateStore
from tests.plugins.stores.adapters import StateHarness

KEYS = st.sampled_from(["a", "a/1", "a/2", "a/1/x", "b", "b/é", "ab"])
PREFIXES = st.sampled_from(["", "a", "a/", "a/1", "b/", "zzz"])
VALUES = st.binary(min_size=1, max_size=20)
TTLS = st.none() | st.integers(1, 20)
LOGS = st.sampled_from(["one", "two"])
MARKER = "~marker"


@dataclass(frozen=True)
class Kept:
    value: bytes
    revision: int
    expires_at: float | None


class Machine(RuleBasedStateMachine):
    """The store and its model; `adapter` is set by the test."""

    adapter = ""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.harness = StateHarness(self.adapter, Path(self.folder.name))
        self.runner = asyncio.Runner()
        self.entries: dict[str, Kept] = {}
        self.logs: dict[str, list[bytes]] = {}
        self.revision = 0
        self.open()

    def open(self) -> None:
        self.store: StateStore = self.harness.make()
        self.watcher: AsyncIterator[StateEntry] = self.store.watch("")
        self.watched = {key: kept.value for key, kept in self.live().items()}

    def teardown(self) -> None:
        self.runner.run(self.store.aclose())
        self.runner.close()
        self.folder.cleanup()

    def live(self) -> dict[str, Kept]:
        now = self.harness.clock.now
        return {
            key: kept
            for key, kept in self.entries.items()
            if kept.expires_at is None or kept.expires_at > now
        }

    def change(
        self, key: str, value: bytes | None, expected: int | None, ttl_s: float | None
    ) -> None:
        standing = self.live().get(key)
        revision = self.runner.run(
            self.store.compare_and_set(key, value, expected=expected, ttl_s=ttl_s)
        )
        if (standing.revision if standing else None) != expected:
            assert revision is None
            return
        assert revision is not None and revision > self.revision
        self.revision = revision
        self.entries.pop(key, None)
        if value is not None:
            expires_at = None if ttl_s is None else self.harness.clock.now + ttl_s
            self.entries[key] = Kept(value, revision, expires_at)

    @rule(key=KEYS, value=st.none() | VALUES, ttl_s=TTLS)
    def change_what_stands(self, key: str, value: bytes | None, ttl_s: float | None) -> None:
        standing = self.live().get(key)
        self.change(key, value, standing.revision if standing else None, ttl_s)

    @rule(key=KEYS, value=st.none() | VALUES, expected=st.none() | st.integers(0, 40))
    def change_at_a_guess(self, key: str, value: bytes | None, expected: int | None) -> None:
        self.change(key, value, expected, None)

    @rule(seconds=st.integers(1, 15))
    def let_time_pass(self, seconds: int) -> None:
        self.harness.clock.now += seconds

    @rule()
    def let_traces_of_deletions_grow_old(self) -> None:
        self.catch_up_watching()
        self.harness.clock.now += 3600

    @rule(prefix=PREFIXES)
    def scan(self, prefix: str) -> None:
        live = self.live()
        found = self.runner.run(self.store.scan(prefix))
        assert found == [
            StateEntry(key, live[key].value, live[key].revision)
            for key in sorted(live)
            if key.startswith(prefix)
        ]

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        kept = self.live().get(key)
        found = self.runner.run(self.store.get(key))
        assert found == (StateEntry(key, kept.value, kept.revision) if kept else None)

    @rule(log=LOGS, record=st.binary(max_size=20))
    def append(self, log: str, record: bytes) -> None:
        records = self.logs.setdefault(log, [])
        assert self.runner.run(self.store.append(log, record)) == len(records)
        records.append(record)

    @rule(log=LOGS, start=st.integers(0, 10), limit=st.integers(0, 10))
    def read_log(self, log: str, start: int, limit: int) -> None:
        found = self.runner.run(self.store.read_log(log, start, limit))
        assert found == self.logs.get(log, [])[start : start + limit]

    @rule()
    def reopen(self) -> None:
        self.runner.run(self.store.aclose())
        self.open()

    @rule()
    def catch_up_watching(self) -> None:
        """The entries that a watcher saw add up to the current state."""
        standing = self.live().get(MARKER)
        self.change(MARKER, b"x", standing.revision if standing else None, None)
        self.runner.run(asyncio.wait_for(self.follow_to(self.revision), 60))
        assert self.watched == {key: kept.value for key, kept in self.live().items()}

    async def follow_to(self, revision: int) -> None:
        seen = 0
        while seen < revision:
            entry = await anext(self.watcher)
            assert entry.revision > seen
            seen = entry.revision
            self.watched.pop(entry.key, None)
            if entry.value:
                self.watched[entry.key] = entry.value


def test_store_behaves_like_a_dict(state: StateHarness) -> None:
    machine = type("AdapterMachine", (Machine,), {"adapter": state.adapter})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=30,
            stateful_step_count=30,
            deadline=None,
            # The folder of the fixture is not used, because each run of the machine makes its own.
            suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        ),
    )
