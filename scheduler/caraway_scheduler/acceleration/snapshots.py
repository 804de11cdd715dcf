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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from caraway_core.errors import CarawayError
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_scheduler.acceleration import making, version_codec
from caraway_scheduler.acceleration.head import Head
from caraway_scheduler.acceleration.making import Maker
from caraway_scheduler.acceleration.recipes import quoted
from caraway_scheduler.acceleration.version import Part, Version
from caraway_scheduler.acceleration.versions import HeldVersion, Successor

logger = logging.getLogger(__name__)
_KEPT = 2
_ORPHANED = timedelta(hours=6)
_SCHEMA = pa.schema([("description", pa.binary())])
_MARK = re.compile(r"(?P<at>[0-9a-f]+)-(?P<sha>[0-9a-f]{64})-(?P<size>[0-9]+)-(?P<id>[0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class Found:
    """A snapshot, by the key that marks it whole."""

    mark: str
    made: int
    description: str
    chunk: ChunkInfo


class SnapshotStore:
    """Writes snapshots of one dataset, and has versions start from them.

    `maker` stores at the place of the snapshots, whose chunks `store` reads.
    """

    def __init__(self, head: Head, maker: Maker, store: ResultStore) -> None:
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
        found = await self._found()
        return str((await self._read(found[-1]))["state"]) if found else None

    async def start(self) -> Successor | None:
        """Bring the last snapshot of this dataset here as its first version.

        Returns None where there is none, or one of something else.

        Raises:
            CarawayError: it cannot be read, or not be stored here.
        """
        found = await self._found()
        if not found:
            return None
        document = await self._read(found[-1])
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

    async def replacement(self, held: HeldVersion) -> Successor | None:
        """Bring the last snapshot here in place of a version, if it has the very same rows.

        An older one is not taken: readers would lose what they have seen.

        Raises:
            CarawayError: it cannot be read, or not be stored here.
        """
        found = await self._found()
        if not found:
            return None
        document = await self._read(found[-1])
        same = state_of(held.version), self._head.subject.origin
        if (document["state"], document["origin"]) != same or held.version.pending:
            return None
        part = version_codec.decode_part(document["key"], document["part"].encode())
        here = await self._copied(part)
        return self._head.anew(held, here, document["sql"], _cut(document["cut"]))

    async def _copied(self, part: Part) -> Part:
        key = making.key_of(self._head.name)
        chunks: list[ChunkInfo] = []
        for index, chunk in enumerate(part.chunks):
            batches = [each async for each in self._store.read_chunk(part.key, chunk)]
            written = await self._head.results.write_chunk(key, index, part.schema, batches)
            chunks.append(
                ChunkInfo(
                    index, written.row_count, written.size_bytes, written.sha256, chunk.partition
                )
            )
        return Part(key, part.schema, tuple(chunks))

    async def _describe(self, part: Part, version: Version) -> None:
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
        found = await self._found()
        for old in found[:-_KEPT]:
            document = await self._read(old)
            # The mark first: without it there is no such snapshot.
            for key in (old.mark, old.description, document["key"]):
                await self._store.delete(key)
        wanted = {(await self._read(each))["key"] for each in found[-_KEPT:]}
        for key in await self._store.keys():
            made_at = making.made_at(key, self._head.name)
            if made_at and key not in wanted and self._head.clock() - made_at > _ORPHANED:
                await self._store.delete(key)


def state_of(version: Version) -> str:
    """Name what readers see of a version: equal where its rows are."""
    log = version.read_log
    return f"{version.key}/{log[-1].chunk.sha256 if log else ''}"


def _cut(written: Sequence[Any]) -> PartitionBy:
    return PartitionBy(tuple(map(version_codec.read_term, written)))
