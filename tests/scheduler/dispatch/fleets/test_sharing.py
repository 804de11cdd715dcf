"""Catalogs and files for executors: one object in Ray's store for all, or a copy by channel."""

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from caraway_core.ids import CatalogVersion, ExecutorId
from caraway_core.protocols.fleet import OwnFile, TableCatalog
from caraway_scheduler.dispatch.fleets import own_files
from caraway_scheduler.dispatch.fleets.answers import Answers
from caraway_scheduler.dispatch.fleets.peers import Peer
from caraway_scheduler.dispatch.fleets.sharing import SharedObjects


class _Actor:
    """An executor that lacks some files, and keeps those that come."""

    def __init__(self, lacks: tuple[OwnFile, ...] = ()) -> None:
        self._lacks = lacks
        self.kept: list[tuple[str, object]] = []

    def __getattr__(self, name: str) -> Any:
        methods: dict[str, Any] = {"missing": self._missing, "keep": self._keep}
        return SimpleNamespace(remote=methods[name])

    def _missing(self, files: tuple[OwnFile, ...]) -> "asyncio.Future[object]":
        return _answered(tuple(each for each in files if each in self._lacks))

    def _keep(self, file: OwnFile, content: object) -> "asyncio.Future[object]":
        self.kept.append((file.path, content))
        return _answered(None)


def _answered(value: object) -> "asyncio.Future[object]":
    answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    answer.set_result(value)
    return answer


class _Store:
    """Ray's store; `gate` lets puts through."""

    def __init__(self) -> None:
        self.puts: list[object] = []
        self.gate = Event()
        self.gate.set()

    def put(self, value: object) -> object:
        self.gate.wait(30)
        self.puts.append(value)
        return ("reference", len(self.puts))


def shared(store: _Store) -> SharedObjects:
    return SharedObjects(Answers(lambda _peer, exc: pytest.fail(str(exc))), store.put)


def peer(actor: object, name: str = "e1") -> Peer:
    return Peer(ExecutorId(name), actor, asyncio.get_running_loop().create_future())


def file(folder: Path, name: str = "a.csv", content: bytes = b"rows") -> OwnFile:
    path = folder / name
    path.write_bytes(content)
    return OwnFile(str(path), len(content), "digest", ".csv")


def catalog(version: int) -> TableCatalog:
    return TableCatalog(CatalogVersion(version), "here", {})


async def test_catalog_is_put_once_for_all_executors() -> None:
    store = _Store()
    objects, first = shared(store), catalog(1)
    one = await objects.catalog(peer(_Actor()), first)
    assert await objects.catalog(peer(_Actor(), "e2"), first) == one == ("reference", 1)
    assert await objects.catalog(peer(_Actor()), catalog(2)) == ("reference", 2)
    assert len(store.puts) == 2


async def test_catalog_is_put_again_after_ray_was_left() -> None:
    store = _Store()
    objects, first = shared(store), catalog(1)
    await objects.catalog(peer(_Actor()), first)
    objects.forget()
    assert await objects.catalog(peer(_Actor()), first) == ("reference", 2)


async def test_only_missing_files_are_sent(tmp_path: Path) -> None:
    store, (one, two) = _Store(), (file(tmp_path), file(tmp_path, "b.csv"))
    actor = _Actor(lacks=(two,))
    await shared(store).send_files(peer(actor), (one, two))
    assert actor.kept == [(two.path, ("reference", 1))]
    await shared(store).send_files(peer(_Actor()), (one, two))
    assert len(store.puts) == 1


async def test_executors_that_need_a_file_at_once_share_one_object(tmp_path: Path) -> None:
    store, one = _Store(), file(tmp_path)
    store.gate.clear()
    objects, actors = shared(store), [_Actor(lacks=(one,)) for _ in range(5)]
    sending = [
        asyncio.ensure_future(objects.send_files(peer(each, str(n)), (one,)))
        for n, each in enumerate(actors)
    ]
    for _ in range(20):
        await asyncio.sleep(0)
    sending[0].cancel()
    store.gate.set()
    done = await asyncio.gather(*sending, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError) and done[1:] == [None] * 4
    assert [each.kept for each in actors[1:]] == [[(one.path, ("reference", 1))]] * 4
    assert len(store.puts) == 1, "one that leaves does not end the others' object"


async def test_object_of_a_file_is_freed_after_the_last_call(tmp_path: Path) -> None:
    store, one = _Store(), file(tmp_path)
    objects = shared(store)
    await objects.send_files(peer(_Actor(lacks=(one,))), (one,))
    gc.collect()
    await asyncio.sleep(0)
    assert not objects._files
    await objects.send_files(peer(_Actor(lacks=(one,))), (one,))
    assert len(store.puts) == 2


async def test_executor_on_a_channel_gets_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, one, first = _Store(), file(tmp_path), catalog(1)
    on_ray: Callable[[Peer], bool] = lambda _peer: False  # noqa: E731 -- a property of one line
    monkeypatch.setattr(Peer, "is_on_ray", property(on_ray))
    actor = _Actor(lacks=(one,))
    assert await shared(store).catalog(peer(actor), first) is first
    await shared(store).send_files(peer(actor), (one,))
    ((path, content),) = actor.kept
    assert path == one.path and content == own_files.content(one)
    assert store.puts == []
