"""Files of local models in a result store, so that executors need no copy of their own."""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import orjson
import pyarrow as pa

from caraway_core.errors import CarawayError, ModelError
from caraway_core.loading import registry
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_core.tables import ResultPlace

MOST_BYTES = 64 << 30
_CHUNK_BYTES = 64 << 20
_ROW_BYTES = 4 << 20
_SCHEMA = pa.schema([("bytes", pa.large_binary())])
Tell = Callable[[str], None]
"""Receives the current step, in a few words."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file in a store. `path` is where the manifest has it."""

    path: str
    size_bytes: int
    sha256: str
    place: ResultPlace = field(repr=False)
    chunks: tuple[ChunkInfo, ...] = field(repr=False)

    @property
    def key(self) -> str:
        return _key(self.sha256)


class FileSender:
    """Puts files into a store. The folder records the files that were sent, for the next start."""

    def __init__(self, place: ResultPlace, folder: Path) -> None:
        self._place = place
        self._folder = folder

    async def send(self, path: Path, written: str) -> SentFile:
        """Store a file, unless it is there.

        Raises:
            OSError: it cannot be read.
            ModelError: it is too large.
            CarawayError: the store cannot be used.
        """
        size = (await asyncio.to_thread(path.stat)).st_size
        if size > MOST_BYTES:
            raise ModelError(
                f"'{path}' has {size >> 30} GiB, and at most {MOST_BYTES >> 30} are sent to "
                "executors; mount it at this path there",
                "invalid",
            )
        sha256 = await asyncio.to_thread(_hash, path)
        store = await asyncio.to_thread(_opened, self._place)
        known = self._folder / f"{_key(sha256)}.json"
        if known.exists() and _key(sha256) in await store.keys():
            chunks = [ChunkInfo.of_fields(each) for each in orjson.loads(known.read_bytes())]
        else:
            chunks = await _written(store, path, _key(sha256))
            await asyncio.to_thread(_remember, known, chunks)
        return SentFile(written, size, sha256, self._place, tuple(chunks))


async def fetch(file: SentFile, target: Path, tell: Tell) -> None:
    """Write a file of a store to a path.

    Raises:
        ModelError: the store cannot be read, or the disk is full.
    """
    draft = target.with_name(f"{target.name}.{os.getpid()}.part")
    hasher, done = hashlib.sha256(), 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        store = await asyncio.to_thread(_opened, file.place)
        with draft.open("wb") as out:
            for chunk in file.chunks:
                tell(f"fetching {done >> 20} of {file.size_bytes >> 20} MiB")
                async for batch in store.read_chunk(file.key, chunk):
                    done += await asyncio.to_thread(_append, batch, out, hasher)
        if hasher.hexdigest() != file.sha256:
            raise ModelError(f"'{file.path}' is damaged in the result store")
        draft.rename(target)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise ModelError(f"'{file.path}' cannot be written to '{target.parent}': {reason}") from exc
    except CarawayError as exc:
        if isinstance(exc, ModelError):
            raise
        raise ModelError(f"'{file.path}' cannot be fetched: {exc.message}", "unavailable") from exc
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _opened(place: ResultPlace) -> ResultStore:
    store: ResultStore = registry.RESULT_STORES.load(place.kind).at(place)
    return store


async def _written(store: ResultStore, path: Path, key: str) -> list[ChunkInfo]:
    chunks: list[ChunkInfo] = []
    with await asyncio.to_thread(path.open, "rb") as file:
        while rows := await asyncio.to_thread(_rows, file):
            chunks.append(await store.write_chunk(key, len(chunks), _SCHEMA, rows))
    return chunks


def _rows(file: IO[bytes]) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = []
    while len(found) < _CHUNK_BYTES // _ROW_BYTES and (part := file.read(_ROW_BYTES)):
        found.append(pa.record_batch([pa.array([part], pa.large_binary())], schema=_SCHEMA))
    return found


def _append(batch: pa.RecordBatch, out: IO[bytes], hasher: "hashlib._Hash") -> int:
    done = 0
    for value in batch.column(0):
        part = value.as_buffer()
        hasher.update(part)
        done += out.write(part)
    return done


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _key(sha256: str) -> str:
    return f"file-{sha256}"


def _remember(path: Path, chunks: Sequence[ChunkInfo]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_bytes(orjson.dumps(chunks))
    draft.rename(path)
