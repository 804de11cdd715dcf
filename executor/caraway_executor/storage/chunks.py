"""Chunks of accelerated datasets: read once, and in memory for as long as they are referenced."""

import asyncio
import gc
import weakref
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa

from caraway_core.concurrency import tasks
from caraway_core.errors import (
    CarawayError,
    DamagedChunkError,
    DatasetDamagedError,
    DiskFullError,
    ExecutionError,
    OutOfMemoryQueryError,
    ResultStoreAwayError,
)
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_core.tables import StoredTable
from caraway_engine.rows.held import Chunk
from caraway_engine.stored import MissingChunks
from caraway_executor.resources.room import TaskMemory
from caraway_executor.storage.fresh import FreshChunks
from caraway_executor.storage.mapped import MappedChunks
from caraway_executor.storage.stores import Stores

_READS = 4
"""The most chunks read at once for one statement."""
_LARGE_BYTES = 64 * 1024 * 1024
"""Before loading this much, unreferenced rows are collected."""


class _Taken:
    """Represents counted bytes; they are returned when the object is freed."""


class KeptChunks:
    """The chunks in the memory of this process, by content hash.

    So catalogs and versions that name the same chunk share it, whatever store it came from. Call
    `bring` from one event loop; `held` is thread-safe.
    """

    def __init__(self, stores: Stores, room: TaskMemory, copies: Path | None = None) -> None:
        self._stores = stores
        self._room = room
        self._mapped = MappedChunks(copies)
        self._fresh = FreshChunks()
        room.reclaim = self._reclaim
        self._held: weakref.WeakValueDictionary[str, Chunk] = weakref.WeakValueDictionary()
        # The place is part of the key: a copy of a damaged chunk has the same content hash.
        self._reading: dict[tuple[str, str], asyncio.Task[Chunk]] = {}

    def held(self, chunk: ChunkInfo) -> Chunk | None:
        """Return a chunk if it is in memory, or None."""
        return self._held.get(chunk.checksum)

    async def bring(self, wanted: Iterable[MissingChunks]) -> list[Chunk]:
        """Load missing chunks. They stay in memory while the caller or a session references them.

        Raises:
            OutOfMemoryQueryError: they do not fit.
            ExecutionError: a chunk is missing or damaged, or its store cannot be opened.
        """
        chunks: list[Chunk] = []
        for each in wanted:
            chunks += self._make_fit(each)
            waiting = iter(each.chunks)
            reads = [tasks.begin(self._read_each(each, waiting)) for _ in range(_READS)]
            try:
                chunks += chain.from_iterable(await asyncio.gather(*reads))
            finally:
                for read in reads:
                    read.cancel()
        return chunks

    def keep(self, key: str, chunk: ChunkInfo, rows: Sequence[pa.RecordBatch]) -> None:
        """Keep a chunk that was just stored for a while, if there is room."""
        # Nothing is evicted for it, least of all earlier chunks.
        has_room = self._room.has(chunk.size_bytes)
        if self.held(chunk) is None and has_room and self._room.take_bytes(chunk.size_bytes):
            self._fresh.add(key, self._made(chunk, rows))

    async def put_back(self, wanted: MissingChunks) -> int:
        """Rewrite stored chunks that are damaged but in memory here; return how many.

        Raises:
            CarawayError: the store cannot be opened or written.
        """
        store = await self._stores.at(wanted.spec.place)
        count = 0
        for chunk in wanted.chunks:
            key = chunk.key or wanted.spec.key
            rows = await self._copied(wanted.spec, chunk)
            if rows and not await _is_whole(store, key, chunk):
                # The same rows give the same bytes, and so the name that versions refer to.
                stored = await store.write_chunk(
                    key, chunk.index, rows[0].schema, rows, chunk.checksum
                )
                count += stored.checksum == chunk.checksum
        return count

    async def _copied(self, spec: StoredTable, chunk: ChunkInfo) -> Sequence[pa.RecordBatch] | None:
        """Return the rows of a chunk that is held somewhere other than its store."""
        if spec.is_mapped:
            # The mapped file may be the damaged one.
            return await asyncio.to_thread(self._mapped.copy_of, chunk)
        known = self.held(chunk)
        return known.batches if known is not None else None

    def _reclaim(self) -> None:
        self._fresh.clear()

    def settle(self, keys: Collection[str]) -> None:
        """Release chunks stored under these keys: their readers reference them by now."""
        self._fresh.let_go(keys)

    def close(self) -> None:
        """Release chunks without readers, and cancel reads in progress."""
        self._fresh.clear()
        for task in list(self._reading.values()):
            task.cancel()

    async def _read_each(
        self, missing_chunks: MissingChunks, chunks: Iterable[ChunkInfo]
    ) -> list[Chunk]:
        return [await self._chunk(missing_chunks, chunk) for chunk in chunks]

    async def _chunk(self, missing_chunks: MissingChunks, chunk: ChunkInfo) -> Chunk:
        if (known := self.held(chunk)) is not None:
            return known
        place = chunk.key or missing_chunks.spec.key, chunk.checksum
        reading = self._reading.get(place)
        if reading is None:
            reading = tasks.begin(self._read(missing_chunks, chunk))
            self._reading[place] = reading
            reading.add_done_callback(lambda _: self._reading.pop(place, None))
        # Shielded, because others may wait for the same chunk.
        return await asyncio.shield(reading)

    async def _read(self, missing_chunks: MissingChunks, chunk: ChunkInfo) -> Chunk:
        if (
            missing_chunks.spec.is_mapped
            and (mapped := await self._map(missing_chunks, chunk)) is not None
        ):
            self._held[chunk.checksum] = mapped
            return mapped
        if not self._room.take_bytes(chunk.size_bytes):
            raise self._too_large(missing_chunks)
        made: Chunk | None = None
        try:
            store = await self._stores.at(missing_chunks.spec.place)
            batches = [
                batch
                async for batch in store.read_chunk(chunk.key or missing_chunks.spec.key, chunk)
            ]
            made = self._made(chunk, batches)
            return made
        except CarawayError as exc:
            raise _unreadable(missing_chunks.table, exc) from exc
        finally:
            if made is None:
                self._room.give(chunk.size_bytes)

    def _made(self, chunk: ChunkInfo, rows: Sequence[pa.RecordBatch]) -> Chunk:
        """Return a chunk whose bytes are counted until it is freed."""
        made = Chunk(tuple(rows))
        weakref.finalize(made, self._room.give, chunk.size_bytes).atexit = False
        self._held[chunk.checksum] = made
        return made

    async def _map(self, missing_chunks: MissingChunks, chunk: ChunkInfo) -> Chunk | None:
        """Memory-map a chunk that stays on disk; the system may drop its pages."""
        try:
            store = await self._stores.at(missing_chunks.spec.place)
            batches = await self._mapped.read(store, chunk.key or missing_chunks.spec.key, chunk)
        except CarawayError as exc:
            raise _unreadable(missing_chunks.table, exc) from exc
        return None if batches is None else Chunk(tuple(batches))

    def count_bytes(self, table: TableName, size_bytes: int) -> object:
        """Count bytes as used for as long as the returned object is kept. Thread-safe.

        Raises:
            OutOfMemoryQueryError: they do not fit.
        """
        if not self._room.take_bytes(size_bytes):
            raise OutOfMemoryQueryError(
                f"dataset '{table}' does not fit in the memory of its executor with its indexes "
                f"and changes: {size_bytes:,} more bytes are needed, {self._room.taken_bytes:,} "
                f"are taken, and the limit is {(self._room.limit_bytes or 0) >> 20} MiB. Refresh "
                "it to have its changes merged, accelerate fewer columns or rows, add executors, "
                "or give them more memory."
            )
        taken = _Taken()
        weakref.finalize(taken, self._room.give, size_bytes).atexit = False
        return taken

    def _make_fit(self, missing_chunks: MissingChunks) -> list[Chunk]:
        """Refuse chunks that cannot fit, before any of them is read.

        Returns the chunks that are already in memory.
        """
        if missing_chunks.spec.is_mapped and self._mapped.can_copy:
            return []
        away = {chunk.checksum: chunk.size_bytes for chunk in missing_chunks.chunks}
        here = [(chunk, known) for chunk in missing_chunks.chunks if (known := self.held(chunk))]
        for chunk, _ in here:
            away.pop(chunk.checksum, None)
        needed = sum(away.values())
        if not self._room.has(needed):
            self._fresh.clear()
        if needed >= _LARGE_BYTES or not self._room.has(needed):
            # Unreferenced sessions and versions may be in reference cycles, and keep their rows
            # until Python collects cycles. It rarely does, because their rows are not Python
            # objects.
            gc.collect()
        if not self._room.has(needed):
            raise self._too_large(missing_chunks)
        return [known for _, known in here]

    def _too_large(self, missing_chunks: MissingChunks) -> OutOfMemoryQueryError:
        needed = sum(chunk.size_bytes for chunk in missing_chunks.chunks)
        limit = (self._room.limit_bytes or 0) >> 20
        return OutOfMemoryQueryError(
            f"dataset '{missing_chunks.table}' does not fit in the memory of its executor: "
            f"{needed:,} bytes of its rows have to be read, {self._room.taken_bytes:,} are taken, "
            f"and the limit is {limit} MiB. Accelerate fewer columns or rows, add executors, or "
            "give them more memory."
        )


async def _is_whole(store: ResultStore, key: str, chunk: ChunkInfo) -> bool:
    try:
        async for _ in store.read_chunk(key, chunk):
            pass
    except DamagedChunkError:
        return False
    return True


def _unreadable(table: TableName, exc: CarawayError) -> CarawayError:
    if isinstance(exc, DamagedChunkError):
        return DatasetDamagedError(table)
    if isinstance(exc, DiskFullError | ResultStoreAwayError):
        return type(exc)(f"dataset '{table}': {exc.message}")
    return ExecutionError(
        f"dataset '{table}': a part of its accelerated rows cannot be read ({exc.message}); "
        "refresh the dataset"
    )
