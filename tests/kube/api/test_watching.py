import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import cast

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_kube.api import client, errors, watching
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.kinds import SERVICE, Object
from caraway_kube.naming import OPERATOR
from caraway_operator.kube.object_cache import ObjectCache
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.kube import Emulator, emulated

SELECTOR = "app.kubernetes.io/name=caraway"


def service(name: str, **labels: str) -> Object:
    found = {"app.kubernetes.io/name": "caraway", "app.kubernetes.io/instance": "shop"} | labels
    spec = {"ports": [{"port": 80}]}
    return {"kind": "Service", "metadata": {"name": name, "labels": found}, "spec": spec}


@asynccontextmanager
async def watched() -> AsyncIterator[tuple[Emulator, ObjectCache, watching.ObjectWatcher]]:
    objects = ObjectCache()
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as kube,
    ):
        watcher = watching.ObjectWatcher(kube, SERVICE, None, SELECTOR, objects)
        task = asyncio.create_task(watcher.run_watch())
        try:
            yield api, objects, watcher
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def known(objects: ObjectCache, *names: str) -> None:
    async def look() -> bool:
        return {which.name for which in objects.of_cluster("web", "shop")} == set(names)

    await eventually(look, f"{names} are known")


async def test_existing_and_changed_objects_are_cached() -> None:
    async with watched() as (api, objects, watcher):
        api.put(service("a"))
        await asyncio.wait_for(watcher.listed.wait(), 60)
        await known(objects, "a")

        api.put(service("b"))
        await known(objects, "a", "b")
        api.remove("Service", "a")

        await known(objects, "b")


async def test_objects_without_the_label_are_not_watched() -> None:
    async with watched() as (api, objects, _):
        api.put(service("other", **{"app.kubernetes.io/name": "something"}))
        api.put(service("mine"))

        await known(objects, "mine")
        assert len(objects) == 1


async def test_an_unavailable_api_server_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_DELAYS", Delays(0, 0))
    monkeypatch.setattr(watching, "_DELAYS", Delays(0.05, 0.05))
    async with watched() as (api, objects, watcher):
        asked = asyncio.Event()

        def away(verb: str, _: object) -> tuple[int, str]:
            asked.set()
            return 503, "away"

        api.refuse = away
        api.put(service("a"))
        await asyncio.wait_for(asked.wait(), 60)
        assert not watcher.listed.is_set()
        api.refuse = lambda _verb, _ref: None

        await known(objects, "a")


async def test_an_expired_watch_lists_again() -> None:
    async with watched() as (api, objects, _):
        api.put(service("a"))
        await known(objects, "a")

        api.expire()
        api.there.clear()
        api.put(service("c"))

        await known(objects, "c")


class CutKube:
    """An API server whose watches break without an event after some seconds."""

    def __init__(self, clock: Clock, held_s: float) -> None:
        self.clock, self.held_s = clock, held_s

    async def list(self, *_: object) -> client.ObjectList:
        return client.ObjectList([], "1")

    async def watch(self, *_: object) -> AsyncIterator[tuple[str, Object]]:
        self.clock.now += self.held_s
        raise errors.ApiUnavailableError("cut")
        yield "", {}


@pytest.mark.parametrize(("held_s", "longest_s"), [(60.0, 0.5), (0.0, 30.0)])
async def test_a_watch_that_lasted_a_while_is_resumed_soon(held_s: float, longest_s: float) -> None:
    """Services rarely change, and a proxy that closes idle watches must not delay events."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 20:
            raise asyncio.CancelledError

    clock = Clock(0.0)
    kube = cast(client.KubeClient, CutKube(clock, held_s))
    watcher = watching.ObjectWatcher(kube, SERVICE, None, SELECTOR, ObjectCache(), clock, sleep)

    with pytest.raises(asyncio.CancelledError):
        await watcher.run_watch()

    assert longest_s / 2 <= max(pauses) <= longest_s


class QuietKube:
    """An API server whose watches end normally without any event."""

    def __init__(self) -> None:
        self.watched_from: list[str] = []

    async def list(self, *_: object) -> client.ObjectList:
        return client.ObjectList([], "7")

    async def watch(
        self, _kind: object, _namespace: object, _selector: str, version: str
    ) -> AsyncIterator[tuple[str, Object]]:
        self.watched_from.append(version)
        return
        yield "", {}


async def test_a_quiet_watch_that_ends_is_resumed_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def sleep(_: float) -> None:
        if len(quiet.watched_from) == 3:
            raise asyncio.CancelledError

    quiet = QuietKube()
    kube = cast(client.KubeClient, quiet)
    watcher = watching.ObjectWatcher(kube, SERVICE, None, SELECTOR, ObjectCache(), sleep=sleep)

    with pytest.raises(asyncio.CancelledError):
        await watcher.run_watch()

    assert quiet.watched_from == ["7", "7", "7"]
    assert not caplog.records
