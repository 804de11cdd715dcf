"""Caches the open result stores of a process."""

import asyncio
from collections import deque
from threading import Lock

from caraway_core.errors import CarawayError, ResultStoreError
from caraway_core.loading import registry
from caraway_core.protocols.results import ChunkWriter, ResultStore
from caraway_core.tables import ResultPlace

_KEPT = 4


class Stores:
    """Keeps the most recently used stores open, because opening one reads from disk or network."""

    def __init__(self) -> None:
        self._opened: deque[tuple[ResultPlace, ResultStore]] = deque(maxlen=_KEPT)
        self._opening = Lock()

    async def at(self, place: ResultPlace) -> ResultStore:
        """Return the store at a place.

        Raises:
            ResultStoreError: it cannot be opened.
        """
        if (store := self._known(place)) is not None:
            return store
        return await asyncio.to_thread(self._open, place)

    async def writer(self, place: ResultPlace) -> ChunkWriter:
        """Return what writes the chunks of a place, which may be no store that reads them.

        Raises:
            ResultStoreError: it cannot be used.
        """
        is_writer = (
            place.kind not in registry.RESULT_STORES and place.kind in registry.CHUNK_WRITERS
        )
        return await (asyncio.to_thread(_writer, place) if is_writer else self.at(place))

    def _known(self, place: ResultPlace) -> ResultStore | None:
        return next(
            (store for result_place, store in list(self._opened) if result_place == place), None
        )

    def _open(self, place: ResultPlace) -> ResultStore:
        with self._opening:
            if (result_store := self._known(place)) is not None:
                return result_store
            try:
                kind = registry.RESULT_STORES.load(place.kind)
                store: ResultStore = kind.at(place)
            except ResultStoreError:
                raise
            except CarawayError as exc:
                raise ResultStoreError(f"result store {place.title}: {exc.message}") from exc
            self._opened.append((place, store))
            return store


def _writer(place: ResultPlace) -> ChunkWriter:
    writer: ChunkWriter = registry.CHUNK_WRITERS.load(place.kind).at(place)
    return writer
