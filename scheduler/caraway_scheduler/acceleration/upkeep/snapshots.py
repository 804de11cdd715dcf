"""Snapshots of an accelerated dataset in a store of their own, to start from without its source.

A snapshot is what a statement over the dataset gave at one moment, stored by executors as any
version is, and a description of it, a chunk of one row. A third key, without rows that count, is
written last and carries in its name where the description is; so a snapshot is whole or not there.
"""

import json
import logging
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
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
from caraway_scheduler.acceleration.versions.head import CurrentVersion
from caraway_scheduler.acceleration.versions.making import Maker
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
    """A snapshot, by the key that marks it whole."""

    mark: str
    made: int
    description: str
    chunk: ChunkInfo


class DatasetSnapshots:
    """Writes snapshots of one dataset, and has versions start from them.

    `maker` stores at the place of the snapshots, whose chunks `store` reads.
    """

    def __init__(self, head: CurrentVersion, maker: Maker, store: ResultStore) -> None:
        self._head = head
        self._maker = maker
        self._store = store
        self._prefix = f"m{making.prefix_of(head.name)}"

    async def write(self) -> str | None:
        """Make a snapshot of what readers have; returns which state it is of, None without one.

        Raises:
            CarawayError: it could not be stored; there is none of it.
        """
        head = self._head
        version = head.shown
        if version is None:
            return None
        sql = f"SELECT * FROM {quoted(head.name)}"
        logs = {version.key: version.read_log} if version.read_log else {}
        part = await self._maker.make(head.name, sql, lambda _: None, version.cut, logs)
        await self._describe(part, version)
        await self._remove_old()
        return state_of(version)

    async def state(self) -> str | None:
        """Return which state the last snapshot is of.

        Raises:
            CarawayError: it cannot be read.
        """
        document = await self._of_last(self._read)
        return str(document["state"]) if document else None

    async def start(self) -> Successor | None:
        """Bring the last snapshot of this dataset here as its first version.

        Returns None where there is none, or one of something else.

        Raises:
            CarawayError: it cannot be read, or not be stored here.
        """
        return await self._of_last(self._first)

    async def replacement(self, held: HeldVersion) -> Successor | None:
        """Bring the last snapshot here in place of a version, if it has the very same rows.

        An older one is not taken: readers would lose what they have seen.

        Raises:
            CarawayError: it cannot be read, or not be stored here.
        """
        return await self._of_last(partial(self._same, held))

    async def _of_last(self, work: Callable[[Found], Awaitable[T | None]]) -> T | None:
        """Return what a work on the last snapshot gives, None without a snapshot.

        Whoever makes newer snapshots removes the older ones, also while they are read. The work
        then begins again with the newest. Each try that fails so means `_KEPT` more snapshots.
        """
        for tries_left in reversed(range(_TRIES)):
            found = await self._found()
            if not found:
                return None
            try:
                return await work(found[-1])
            except CarawayError:
                # The mark goes first, so one that is still there is no reason for the failure.
                if not tries_left or found[-1] in await self._found():
                    raise
        return None

    async def _first(self, found: Found) -> Successor | None:
        document = await self._read(found)
        subject = self._head.subject
        if document["origin"] != subject.origin:
            logger.warning(
                "the snapshot is of another source, key or choice of rows and is not used",
                extra={"dataset": self._head.name},
            )
            return None
        part = version_codec.decode_part(document["key"], document["part"].encode())
        here = await self._copied(part)
        first = self._head.anew(None, here, document["sql"], _cut(document["cut"]))
        return replace(first, version=replace(first.version, position=document["position"]))

    async def _same(self, held: HeldVersion, found: Found) -> Successor | None:
        document = await self._read(found)
        same = state_of(held.version), self._head.subject.origin
        if (document["state"], document["origin"]) != same or held.version.pending:
            return None
        part = version_codec.decode_part(document["key"], document["part"].encode())
        here = await self._copied(part)
        return self._head.anew(held, here, document["sql"], _cut(document["cut"]))

    async def _copied(self, part: VersionPart) -> VersionPart:
        key = making.key_of(self._head.name)
        try:
            chunks = [await self._copy(part, number, key) for number in range(len(part.chunks))]
        except CarawayError:
            with suppress(CarawayError):
                await self._head.results.delete(key)
            raise
        return VersionPart(key, part.schema, tuple(chunks))

    async def _copy(self, part: VersionPart, number: int, key: str) -> ChunkInfo:
        chunk = part.chunks[number]
        batches = [each async for each in self._store.read_chunk(part.key, chunk)]
        written = await self._head.results.write_chunk(key, number, part.schema, batches)
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
        """Remove old snapshots, and rows that belong to none.

        Two schedulers may do this at once, and descriptions may be damaged.
        """
        found = await self._found()
        for old in found[:-_KEPT]:
            rows = await self._rows_of(old)
            # The mark first: without it there is no such snapshot.
            for key in (old.mark, old.description, rows):
                if key is not None:
                    await self._store.delete(key)
        wanted = {await self._rows_of(each) for each in found[-_KEPT:]}
        if None in wanted:
            return
        for key in await self._store.keys():
            made_at = making.made_at(key, self._head.name)
            if made_at and key not in wanted and self._head.clock() - made_at > _ORPHANED:
                await self._store.delete(key)

    async def _rows_of(self, found: Found) -> str | None:
        """Return where the rows of a snapshot are, None if its description cannot be read."""
        try:
            return str((await self._read(found))["key"])
        except CarawayError as exc:
            logger.info("a snapshot cannot be read", extra={"cause": exc.message})
            return None


def state_of(version: DatasetVersion) -> str:
    """Name what readers see of a version: equal where its rows are."""
    log = version.read_log
    return f"{version.key}/{log[-1].chunk.sha256 if log else ''}"


def _cut(written: Sequence[Any]) -> PartitionBy:
    return PartitionBy(tuple(map(version_codec.read_term, written)))
