"""The membership over a fleet of executors that only answer heartbeats."""

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.fleet import Description
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.membership import registrations, state
from tests.kit.fleets import FakeExecutor
from tests.scheduler.membership.membership_clusters import (
    WAIT_S,
    catalog,
    cluster,
)


async def test_executors_register_and_become_ready(tmp_path: Path) -> None:
    async with cluster(tmp_path, "b", "a") as running:
        assert running.states == {"a": "ready", "b": "ready"}
        first, second = running.membership.ready()
        assert (first.executor_id, second.executor_id) == ("a", "b")
        assert (first.cores, first.address, first.incarnation) == (2, "a.test", "first")
        (status, _) = running.membership.executors()
        assert (status.catalog_version, status.build, status.reason) == (1, "9.9", "")


async def test_executor_that_comes_later_gets_the_catalog(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a") as running:
        late = running.fleet.add(FakeExecutor("b"))
        assert await running.membership.wait_ready(2, WAIT_S)
        assert late.description.catalogs == {"here": 1}


async def test_installation_returns_what_failed_anywhere(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        running.fleet["b"].install_failures = {TableName("t"): "no such file"}
        assert await running.membership.install(catalog(2)) == {"t": "no such file"}
        assert running.states == {"a": "ready", "b": "ready"}


async def test_hanging_executor_delays_neither_others_nor_the_catalog(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        running.fleet["a"].hang()
        assert await running.membership.install(catalog(2)) == {}
        assert [member.executor_id for member in running.membership.ready()] == ["b"]
        assert running.states == {"a": "ready", "b": "ready"}, "a still holds the one before"
        running.fleet["a"].hangs.set()
        assert await running.membership.wait_ready(2, WAIT_S)


async def test_installation_without_executors_does_not_wait(tmp_path: Path) -> None:
    async with cluster(tmp_path, version=0) as running:
        assert await running.membership.install(catalog(1)) == {}
        assert running.membership.ready() == ()
        assert not await running.membership.wait_ready(1, 0.01)


async def test_silent_executor_is_lost_and_returns_by_itself(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        running.fleet["a"].is_silent = True
        await running.rounds(2)
        running.clock.now += state.LOST_AFTER_S
        await running.until(lambda: running.states["a"] == "lost")
        assert running.states["b"] == "ready"
        assert running.fleet.given_up == ["a"]
        running.fleet["a"].is_silent = False
        await running.until(lambda: running.states["a"] == "ready")
        assert running.fleet["a"].probes == 2
        assert running.fleet["a"].installs == 1


async def test_a_paused_scheduler_loses_no_executor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        describe, stops = running.fleet.describe, [2 * state.LOST_AFTER_S]

        async def stopped(*asked: Any) -> Sequence[Description]:
            """Pause during one call: its time is over before answers are read."""
            if stops:
                running.clock.now += stops.pop()
                return []
            return await describe(*asked)

        monkeypatch.setattr(running.fleet, "describe", stopped)
        await running.rounds(3)
        assert running.states == {"a": "ready", "b": "ready"}
        assert running.fleet.given_up == []
        # An executor that stays silent is still lost.
        running.fleet["a"].is_silent = True
        stops += [2 * state.LOST_AFTER_S] * 2
        await running.until(lambda: running.states["a"] == "lost")


async def test_restarted_executor_receives_everything_again(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a") as running:
        running.fleet["a"].restart()
        await running.until(lambda: running.fleet["a"].probes == 2)
        assert running.fleet["a"].installs == 2
        assert await running.membership.wait_ready(1, WAIT_S)
        assert running.membership.ready()[0].incarnation == "second"


async def test_executor_reported_lost_gets_no_more_work(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        running.membership.lost(ExecutorId("a"), "the actor died")
        assert [member.executor_id for member in running.membership.ready()] == ["b"]
        assert running.fleet.given_up == ["a"]
        (status, _) = running.membership.executors()
        assert (status.state, status.reason) == ("lost", "the actor died")
        running.clock.now += 1
        assert await running.membership.wait_ready(2, WAIT_S), "it answers, so it is back"


async def test_executor_lost_during_a_step_frees_the_step(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a") as running:
        running.fleet["a"].hang()
        late = running.fleet.add(FakeExecutor("b"))
        late.hang()
        await running.until(lambda: "b" in running.states)
        running.membership.lost(ExecutorId("b"), "x")
        late.hangs.set()
        running.clock.now += 1
        assert await running.membership.wait_ready(2, WAIT_S)
        assert late.installs == 1


async def test_other_protocol_version_is_refused_on_both_sides_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster(tmp_path, "a") as running:
        caplog.set_level(logging.WARNING)
        foreign = running.fleet.add(FakeExecutor("b", PROTOCOL_VERSION + 1))
        await running.until(lambda: bool(foreign.refusals))
        await running.rounds(5)
        (reason,) = foreign.refusals
        assert "build 9.9" in reason and "build 1.0" in reason
        logged = [record for record in caplog.records if record.message == "executor is refused"]
        assert [record.__dict__["reason"] for record in logged] == [reason]
        assert running.states == {"a": "ready", "b": "refused"}
        assert foreign.installs == 0


async def test_draining_executor_is_registered_but_gets_no_work(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        running.fleet["a"].change(is_draining=True)
        await running.until(lambda: running.states["a"] == "draining")
        assert [member.executor_id for member in running.membership.ready()] == ["b"]
        assert [one.is_registered for one in running.membership.executors()] == [True, True]


async def test_failing_probe_is_reported_and_retried(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a") as running:
        late = FakeExecutor("b")
        late.probe_error = CarawayError("no memory")
        running.fleet.add(late)
        await running.until(lambda: late.probes == 1)
        (_, status) = running.membership.executors()
        assert (status.state, status.reason) == ("registered", "probe: no memory")
        late.probe_error = None
        running.clock.now += 1
        assert await running.membership.wait_ready(2, WAIT_S)


async def test_failing_fleet_is_logged_once_and_called_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster(tmp_path, "a") as running:
        running.fleet.error = RuntimeError("the head is away")
        await running.rounds(3)
        running.fleet.error = None
        await running.rounds(2)
        assert running.states == {"a": "ready"}
        warnings = [one for one in caplog.records if one.message == "executors cannot be called"]
        assert len(warnings) == 1


async def test_changes_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(tmp_path, "a") as running:
        told: list[dict[str, str]] = []
        monkeypatch.setattr(
            running.listener, "executors_changed", lambda: told.append(running.states)
        )
        await running.rounds(5)
        assert told == [], "a heartbeat changes nothing"
        running.membership.lost(ExecutorId("a"), "x")
        assert told == [{"a": "lost"}]


async def test_heartbeats_survive_a_failing_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster(tmp_path, "a") as running:

        def fail() -> None:
            raise RuntimeError("a defect")

        monkeypatch.setattr(running.listener, "executors_changed", fail)
        running.fleet["a"].change(is_draining=True)
        await running.until(lambda: running.states["a"] == "draining")
        running.fleet["a"].restart()
        await running.until(lambda: running.states["a"] != "draining")
        monkeypatch.undo()
        assert await running.membership.wait_ready(1, WAIT_S)


async def test_registrations_are_in_the_store(tmp_path: Path) -> None:
    async with cluster(tmp_path, "a", "b") as running:
        watcher = running.store.watch("")
        found = {entry.key: json.loads(entry.value) for entry in await running.store.scan("")}
        while "executors/b" not in found or "executors/a" not in found:
            entry = await asyncio.wait_for(anext(watcher), WAIT_S)
            found[entry.key] = json.loads(entry.value)
        assert found["executors/a"]["address"] == "a.test"
        assert found["executors/a"]["protocol_version"] == PROTOCOL_VERSION
        assert "executors/a" in found
        running.membership.lost(ExecutorId("a"), "x")
        running.fleet["a"].is_silent = True
        async with asyncio.timeout(WAIT_S):
            async for entry in watcher:
                if entry.key == "executors/a" and not entry.value:
                    break
    reopened = SqliteStateStore(tmp_path / "state.db", running.clock)
    assert await reopened.get("schedulers/here") is None, "it has said goodbye"
    running.clock.now += registrations.TTL_S
    assert await reopened.scan("") == []
    await reopened.aclose()
