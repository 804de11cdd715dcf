"""Stores snapshots of an accelerated dataset, so that it can start without its source.

A snapshot consists of rows, which executors store like those of any version, and a description,
which is a chunk with one row. A third key without rows is written last and refers to the
description in its name. So a snapshot is either complete or absent.
"""

import json
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from caraway_core.errors import CarawayError
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_scheduler.acceleration.recipes.recipes import quoted
from caraway_scheduler.acceleration.versions import making, version_codec
from caraway_scheduler.acceleration.versions.current_version import CurrentVersion
from caraway_scheduler.acceleration.versions.making import VersionMaker
from caraway_scheduler.acceleration.versions.version import DatasetVersion, VersionPart
from caraway_scheduler.acceleration.versions.versions import HeldVersion, Successor

logger = logging.getLogger(__name__)
_KEPT = 2
_TRIES = 5
_ORPHANED = timedelta(hours=6)
T = TypeVar("T")
_SCHEMA = pa.schema([("description", pa.binary())])
_MARK = re.compile(r"(?P<at>[0-9a-f]+)-(?P<sha>[0-9a-f]{64})-(?P<size>[0-9]+)-(?P<id>[0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Found:
    """A snapshot, with the key that marks it as complete."""

    mark: str
    made: int
    description: str
    chunk: ChunkInfo


class DatasetSnapshots:
    """Writes snapshots of one dataset, and creates versions from them.

    `maker` stores rows in the place of the snapshots, and `store` reads their chunks.
    """

    def __init__(self, current: CurrentVersion, maker: VersionMaker, store: ResultStore) -> None:
        self._current = current
        self._maker = maker
        self._store = store
        self._prefix = f"m{making.prefix_of(current.name)}"

    async def write(self) -> str | None:
        """Write a snapshot of the version that readers see; returns its state, or None without one.

        Raises:
            CarawayError: the snapshot could not be stored, and does not exist.
        """
        current = self._current
        version = current.shown
        if version is None:
            return None
        sql = f"SELECT * FROM {quoted(current.name)}"
        logs = {version.key: version.read_log} if version.read_log else {}
        part = await self._maker.make(current.name, sql, lambda _: None, version.cut, logs)
        await self._describe(part, version)
        await self._remove_old()
        return state_of(version)

    async def state(self) -> str | None:
        """Return the state of the last snapshot, or None without one.

        Raises:
            CarawayError: the snapshot cannot be read.
        """
        document = await self._of_last(self._read)
        return str(document["state"]) if document else None

    async def start(self) -> Successor | None:
        """Copy the last snapshot of this dataset here, as its first version.

        Returns None if there is none, or if it has another origin.

        Raises:
            CarawayError: the snapshot cannot be read, or not be stored here.
        """
        return await self._of_last(self._first)

    async def replacement(self, held: HeldVersion) -> Successor | None:
        """Copy the last snapshot here to replace a version, if it has exactly the same rows.

        An older snapshot is not used, because readers would lose rows that they have seen.

        Raises:
            CarawayError: the snapshot cannot be read, or not be stored here.
        """
        return await self._of_last(partial(self._same, held))

    async def _of_last(self, work: Callable[[Found], Awaitable[T | None]]) -> T | None:
        """Call `work` with the last snapshot, and return its result; None without a snapshot.

        A writer of newer snapshots deletes older ones, even while they are read. `work` is then
        called again with the newest one. Each such failure means that `_KEPT` newer snapshots
        exist.
        """
        for tries_left in reversed(range(_TRIES)):
            found = await self._found()
            if not found:
                return None
            try:
                return await work(found[-1])
            except CarawayError:
                # The mark is deleted first, so if it still exists, the failure has another reason.
                if not tries_left or found[-1] in await self._found():
                    raise
        return None

    async def _first(self, found: Found) -> Successor | None:
        document = await self._read(found)
        subject = self._current.subject
        if not subject.accepts(_fingerprint(document)):
            logger.warning(
                "the snapshot has another source, key or selection of rows and is not used",
                extra={"dataset": self._current.name},
            )
            return None
        part = version_codec.decode_part(document["key"], document["part"].encode())
        here = await self._copied(part)
        first = self._current.anew(None, here, document["sql"], _cut(document["cut"]))
        return replace(first, version=replace(first.version, position=document["position"]))

    async def _same(self, held: HeldVersion, found: Found) -> Successor | None:
        document = await self._read(found)
        is_same = document["state"] == state_of(held.version) and not held.version.pending
        if not is_same or not self._current.subject.accepts(_fingerprint(document)):
            return None
        part = version_codec.decode_part(document["key"], document["part"].encode())
        here = await self._copied(part)
        return self._current.anew(held, here, document["sql"], _cut(document["cut"]))

    async def _copied(self, part: VersionPart) -> VersionPart:
        key = making.key_of(self._current.name)
        try:
            chunks = [await self._copy(part, number, key) for number in range(len(part.chunks))]
        except CarawayError:
            with suppress(CarawayError):
                await self._current.results.delete(key)
            raise
        return VersionPart(key, part.schema, tuple(chunks))

    async def _copy(self, part: VersionPart, number: int, key: str) -> ChunkInfo:
        chunk = part.chunks[number]
        batches = [each async for each in self._store.read_chunk(part.key, chunk)]
        written = await self._current.results.write_chunk(key, number, part.schema, batches)
        return replace(written, partition=chunk.partition)

    async def _describe(self, part: VersionPart, version: DatasetVersion) -> None:
        document = {
            "origin": version.origin,
            "key": part.key,
            "part": version_codec.encode_part(part).decode(),
            "cut": [version_codec.term(each) for each in version.cut.terms],
            "position": version.position,
            "sql": version.sql,
            "state": state_of(version),
            "definition": version.definition,
        }
        identity = uuid.uuid4().hex
        row = pa.record_batch([pa.array([json.dumps(document).encode()])], schema=_SCHEMA)
        described = f"d{self._prefix}{identity}"
        chunk = await self._store.write_chunk(described, 0, _SCHEMA, [row])
        mark = f"{self._prefix}{time.time_ns():x}-{chunk.sha256}-{chunk.size_bytes}-{identity}"
        await self._store.write_chunk(mark, 0, _SCHEMA, [row.slice(0, 0)])

    async def _read(self, found: Found) -> Any:
        rows = [each async for each in self._store.read_chunk(found.description, found.chunk)]
        try:
            return json.loads(rows[0].column(0)[0].as_py())
        except (ValueError, IndexError) as exc:
            raise CarawayError(f"the snapshot '{found.mark}' is damaged: {exc}") from exc

    async def _found(self) -> Sequence[Found]:
        found = []
        for key in await self._store.keys():
            match = _MARK.fullmatch(key.removeprefix(self._prefix))
            if match is None or not key.startswith(self._prefix):
                continue
            chunk = ChunkInfo(0, 1, int(match["size"]), match["sha"])
            described = f"d{self._prefix}{match['id']}"
            found.append(Found(key, int(match["at"], 16), described, chunk))
        return sorted(found, key=lambda each: each.made)

    async def _remove_old(self) -> None:
        """Delete old snapshots, and rows that belong to no snapshot.

        Two schedulers may do this at the same time, and descriptions may be damaged.
        """
        found = await self._found()
        for old in found[:-_KEPT]:
            rows = await self._rows_of(old)
            # Delete the mark first: without it, the snapshot does not exist.
            for key in (old.mark, old.description, rows):
                if key is not None:
                    await self._store.delete(key)
        wanted = {await self._rows_of(each) for each in found[-_KEPT:]}
        if None in wanted:
            return
        for key in await self._store.keys():
            made_at = making.made_at(key, self._current.name)
            if made_at and key not in wanted and self._current.clock() - made_at > _ORPHANED:
                await self._store.delete(key)

    async def _rows_of(self, found: Found) -> str | None:
        """Return the key of a snapshot's rows, or None if its description cannot be read."""
        try:
            return str((await self._read(found))["key"])
        except CarawayError as exc:
            logger.info("snapshot cannot be read", extra={"cause": exc.message})
            return None


def state_of(version: DatasetVersion) -> str:
    """Return an identifier of the rows that readers see of a version."""
    log = version.read_log
    return f"{version.key}/{log[-1].chunk.sha256 if log else ''}"


def _fingerprint(document: Mapping[str, Any]) -> str:
    return str(document.get("definition") or document["origin"])


def _cut(written: Sequence[Any]) -> PartitionBy:
    return PartitionBy(tuple(map(version_codec.read_term, written)))
