import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import cast

import pytest

from caraway_core.backoff import Delays
from caraway_operator.kube import client, errors, watching
from caraway_operator.kube.access import Access
from caraway_operator.kube.kinds import SERVICE, Object
from caraway_operator.kube.objects import Objects
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.kube import Emulator, emulated

SELECTOR = "app.kubernetes.io/name=caraway"


def service(name: str, **labels: str) -> Object:
    found = {"app.kubernetes.io/name": "caraway", "app.kubernetes.io/instance": "shop"} | labels
    spec = {"ports": [{"port": 80}]}
    return {"kind": "Service", "metadata": {"name": name, "labels": found}, "spec": spec}


@asynccontextmanager
async def watched() -> AsyncIterator[tuple[Emulator, Objects, watching.Watcher]]:
    objects = Objects()
    async with emulated() as api, client.connected(Access(str(api.url).rstrip("/"))) as kube:
        watcher = watching.Watcher(kube, SERVICE, None, SELECTOR, objects)
        task = asyncio.create_task(watcher.run())
        try:
            yield api, objects, watcher
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def known(objects: Objects, *names: str) -> None:
    async def look() -> bool:
        return {which.name for which in objects.of("web", "shop")} == set(names)

    await eventually(look, f"{names} are known")


async def test_what_was_there_and_what_changes_is_known() -> None:
    async with watched() as (api, objects, watcher):
        api.put(service("a"))
        await asyncio.wait_for(watcher.listed.wait(), 60)
        await known(objects, "a")

        api.put(service("b"))
        await known(objects, "a", "b")
        api.remove("Service", "a")

        await known(objects, "b")


async def test_objects_of_others_are_not_watched() -> None:
    async with watched() as (api, objects, _):
        api.put(service("other", **{"app.kubernetes.io/name": "something"}))
        api.put(service("mine"))

        await known(objects, "mine")
        assert len(objects) == 1


async def test_an_api_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_a_watch_that_is_too_old_begins_anew_with_a_list() -> None:
    async with watched() as (api, objects, _):
        api.put(service("a"))
        await known(objects, "a")

        api.expire()
        api.there.clear()
        api.put(service("c"))

        await known(objects, "c")


class CutKube:
    """An API whose watches are cut without an event, some seconds after they began."""

    def __init__(self, clock: Clock, held_s: float) -> None:
        self.clock, self.held_s = clock, held_s

    async def list(self, *_: object) -> client.Listing:
        return client.Listing([], "1")

    async def watch(self, *_: object) -> AsyncIterator[tuple[str, Object]]:
        self.clock.now += self.held_s
        raise errors.AwayError("cut")
        yield "", {}


@pytest.mark.parametrize(("held_s", "longest_s"), [(60.0, 0.5), (0.0, 30.0)])
async def test_watches_that_held_for_a_while_go_on_at_once(held_s: float, longest_s: float) -> None:
    """Of Services nothing is heard for days: a proxy that cuts idle watches must not delay it."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 20:
            raise asyncio.CancelledError

    clock = Clock(0.0)
    kube = cast(client.Kube, CutKube(clock, held_s))
    watcher = watching.Watcher(kube, SERVICE, None, SELECTOR, Objects(), clock, sleep)

    with pytest.raises(asyncio.CancelledError):
        await watcher.run()

    assert longest_s / 2 <= max(pauses) <= longest_s
