"""Gives executors catalogs and files: one object in Ray's store for all, or a copy by channel."""

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from caraway_core.concurrency import tasks
from caraway_core.protocols.fleet import OwnFile, TableCatalog
from caraway_scheduler.dispatch.fleets import own_files
from caraway_scheduler.dispatch.fleets.answers import Answers
from caraway_scheduler.dispatch.fleets.peers import Peer


class SharedObjects:
    """Keeps objects in Ray's store while fleets need them."""

    def __init__(self, answers: Answers, put: Callable[[object], object]) -> None:
        """Set how to wait for executors, and Ray's `put`, which blocks."""
        self._answers = answers
        self._put = put
        self._files: WeakValueDictionary[str, asyncio.Future[object]] = WeakValueDictionary()
        self._catalog: tuple[TableCatalog, object] | None = None

    async def catalog(self, peer: Peer, catalog: TableCatalog) -> Any:
        """Return what to call an executor with: a reference, or the catalog itself."""
        if not peer.is_on_ray:
            return catalog
        if self._catalog is None or self._catalog[0] is not catalog:
            self._catalog = catalog, await asyncio.to_thread(self._put, catalog)
        return self._catalog[1]

    async def send_files(self, peer: Peer, files: tuple[OwnFile, ...]) -> None:
        """Send an executor the files that it lacks."""
        missing: tuple[OwnFile, ...] = await self._answers.answer(
            peer, peer.actor.missing.remote(files)
        )
        for file in missing:
            if not peer.is_on_ray:
                content = await asyncio.to_thread(own_files.content, file)
                await self._answers.answer(peer, peer.actor.keep.remote(file, content))
                continue
            # Executors that need a file at the same time share one object, freed after the last
            # call.
            putting = self._files.get(file.path)
            if putting is None:
                putting = tasks.begin(asyncio.to_thread(self._put_file, file))
                self._files[file.path] = putting
            await self._answers.answer(
                peer, peer.actor.keep.remote(file, await asyncio.shield(putting))
            )

    def forget(self) -> None:
        """Let go of everything, because Ray is left."""
        self._catalog = None
        self._files.clear()

    def _put_file(self, file: OwnFile) -> object:
        return self._put(own_files.content(file))
