"""The catalogs that statements under way were planned over: executors keep them until the end."""

import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pyarrow as pa

from caraway_core.ids import CatalogVersion
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import Pinned


class Pins:
    """Counts the statements over each version. Used from one event loop."""

    def __init__(self) -> None:
        self._counts: Counter[CatalogVersion] = Counter()

    def take(self, version: CatalogVersion) -> Callable[[], None]:
        """Pin a version; what is returned unpins it, once."""
        self._counts[version] += 1
        is_held = True

        def release() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                self._counts[version] -= 1
                if not self._counts[version]:
                    del self._counts[version]

        return release

    def pinned(self, served: CatalogVersion) -> Pinned:
        """Return what executors have to keep while new statements use the version `served`."""
        return Pinned(served, frozenset(self._counts))


class PinnedStream:
    """A stream that unpins its catalog when it ends, is closed, or is dropped."""

    def __init__(self, stream: BatchStream, release: Callable[[], None]) -> None:
        self._stream = stream
        self._batches = aiter(stream)
        self._release = weakref.finalize(self, release)
        self._release.atexit = False
        self.schema: pa.Schema = stream.schema
        self.reads_only_catalog = stream.reads_only_catalog
        self.written = stream.written

    @property
    def is_at_end(self) -> bool:
        """Whether it is known already that no more rows will come."""
        return bool(getattr(self._stream, "is_at_end", False))

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        try:
            return await anext(self._batches)
        except BaseException:
            self._release()
            raise

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._release()
