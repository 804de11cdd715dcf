"""Stores snapshots of an accelerated dataset, so that it can start without its source.

A snapshot consists of rows, which executors store like those of any version, and a description,
which is a chunk with one row. A third key without rows is written last and refers to the
description in its name. So a snapshot is either complete or absent.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from caraway_acceleration.recipes.recipes import quoted
from caraway_acceleration.versions import making, version_codec
from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_acceleration.versions.making import VersionMaker
from caraway_acceleration.versions.version import DatasetVersion, VersionPart
from caraway_acceleration.versions.versions import HeldVersion, Successor
from caraway_core.errors import CarawayError, InvalidRequestError, NotFoundError
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols import snapshots as snapshot_marks
from caraway_core.protocols.results import ChunkInfo, ResultStore
from caraway_core.protocols.snapshots import FoundSnapshot, SnapshotListing

logger = logging.getLogger(__name__)
_TRIES = 5
_ORPHANED = timedelta(hours=6)
T = TypeVar("T")
_SCHEMA = pa.schema([("description", pa.binary())])


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A snapshot as clients see it; without rows, its description cannot be read."""

    number: int
    made_ms: int
    key: str
    checksum: str
    size_bytes: int
    rows: int | None
    is_current: bool


class DatasetSnapshots:
    """Writes snapshots of one dataset, and creates versions from them.

    `maker` stores rows in the place of the snapshots, and `store` reads their chunks.
    """

    def __init__(
        self, current: CurrentVersion, maker: VersionMaker, store: ResultStore, keep: int = 2
    ) -> None:
        self._current = current
        self._keep = keep
        self._maker = maker
        self._store = store
        self._prefix = snapshot_marks.prefix_of(current.name)

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
        part = await self._maker.make(current.name, sql, lambda _: None, version.partition_by, logs)
        await self._describe(part, version)
        await self._remove_old()
        return state_of(version)

    async def holds(self, version: DatasetVersion) -> bool:
        """Return whether the current snapshot has the rows that readers see of a version.

        Raises:
            CarawayError: the snapshot cannot be read.
        """
        return bool(await self._of_current(partial(self._has_rows, version)))

    async def listed(self, limit: int) -> tuple[SnapshotInfo, ...]:
        """Return the last snapshots, the oldest first.

        Raises:
            CarawayError: the store cannot be read.
        """
        listing = await self._listing()
        return tuple([await self._info(each, listing) for each in listing.found[-limit:]])

    async def info(self, number: int) -> SnapshotInfo:
        """Return one snapshot.

        Raises:
            NotFoundError: there is none of this number, or none any more.
        """
        listing = await self._listing()
        return await self._info(self._of_number(number, listing), listing)

    async def restored(
        self, number: int, held: HeldVersion | None
    ) -> tuple[FoundSnapshot, Successor]:
        """Copy the rows of a snapshot here, to replace the version that is held.

        Raises:
            NotFoundError: there is none of this number, or none any more.
            InvalidRequestError: it has another origin.
            CarawayError: it cannot be read, or not be stored here.
        """
        snapshot = self._of_number(number, await self._listing())
        try:
            return snapshot, await self._replacing(number, snapshot, held)
        except CarawayError:
            # A writer of newer snapshots may have deleted it meanwhile.
            self._of_number(number, await self._listing())
            raise

    async def _replacing(
        self, number: int, snapshot: FoundSnapshot, held: HeldVersion | None
    ) -> Successor:
        document = await self._read(snapshot)
        if not self._current.subject.accepts(_fingerprint(document)):
            raise InvalidRequestError(
                f"the snapshot {number} of dataset '{self._current.name}' has another source, key "
                "or selection of rows than the manifest says now"
            )
        return await self._made(document, held)

    async def choose(self, found: FoundSnapshot, version: DatasetVersion) -> str:
        """Make a snapshot the current one. The version that was made from it is not written again.

        Returns the key of the choice. Raises CarawayError: it cannot be stored.
        """
        key = snapshot_marks.choice_of(self._prefix, found, state_of(version))
        await self._store.write_chunk(key, 0, _SCHEMA, [])
        return key

    async def forget(self, choice: str) -> None:
        """Delete the key of a choice."""
        with suppress(CarawayError):
            await self._store.delete(choice)

    async def forget_earlier(self, choice: str) -> None:
        """Delete the keys of choices before this one, which have no effect any more."""
        with suppress(CarawayError):
            for each in (await self._listing()).choices[:-1]:
                if each.key != choice:
                    await self._store.delete(each.key)

    async def start(self) -> Successor | None:
        """Copy the last snapshot of this dataset here, as its first version.

        Returns None if there is none, or if it has another origin.

        Raises:
            CarawayError: the snapshot cannot be read, or not be stored here.
        """
        return await self._of_current(self._first)

    async def replacement(self, held: HeldVersion) -> Successor | None:
        """Copy the last snapshot here to replace a version, if it has exactly the same rows.

        An older snapshot is not used, because readers would lose rows that they have seen.

        Raises:
            CarawayError: the snapshot cannot be read, or not be stored here.
        """
        return await self._of_current(partial(self._same, held))

    async def _of_current(self, work: Callable[[FoundSnapshot], Awaitable[T | None]]) -> T | None:
        """Call `work` with the current snapshot, and return its result; None without a snapshot.

        A writer of newer snapshots deletes older ones, even while they are read. `work` is then
        called again with the newest one. Each such failure means that as many newer snapshots
        exist as are kept.
        """
        for tries_left in reversed(range(_TRIES)):
            snapshot = (await self._listing()).current
            if snapshot is None:
                return None
            try:
                return await work(snapshot)
            except CarawayError:
                # The mark is deleted first, so if it still exists, the failure has another reason.
                marks = {each.mark for each in (await self._listing()).found}
                if not tries_left or snapshot.mark in marks:
                    raise
        return None

    def _of_number(self, number: int, listing: SnapshotListing) -> FoundSnapshot:
        for each in listing.found:
            if each.number == number:
                return each
        raise NotFoundError(
            f"dataset '{self._current.name}' has no snapshot {number}, or not any more; "
            f"{len(listing.found)} are kept"
        )

    async def _info(self, snapshot: FoundSnapshot, listing: SnapshotListing) -> SnapshotInfo:
        current = listing.current
        size, rows = snapshot.chunk.size_bytes, None
        try:
            document = await self._read(snapshot)
            part = version_codec.decode_part(document["key"], document["part"].encode())
            size = sum(chunk.size_bytes for chunk in part.chunks)
            rows = sum(chunk.row_count for chunk in part.chunks)
        except CarawayError as exc:
            logger.info("snapshot cannot be read", extra={"cause": exc.message})
        return SnapshotInfo(
            snapshot.number,
            snapshot.made // 1_000_000,
            snapshot.mark,
            snapshot.chunk.checksum,
            size,
            rows,
            current is not None and current.mark == snapshot.mark,
        )

    async def _has_rows(self, version: DatasetVersion, snapshot: FoundSnapshot) -> bool:
        if snapshot.was_restored_as(state_of(version)):
            return True
        return bool((await self._read(snapshot))["state"] == state_of(version))

    async def _first(self, snapshot: FoundSnapshot) -> Successor | None:
        document = await self._read(snapshot)
        subject = self._current.subject
        if not subject.accepts(_fingerprint(document)):
            logger.warning(
                "the snapshot has another source, key or selection of rows and is not used",
                extra={"dataset": self._current.name},
            )
            return None
        first = await self._made(document, None)
        return replace(first, version=replace(first.version, position=document["position"]))

    async def _same(self, held: HeldVersion, snapshot: FoundSnapshot) -> Successor | None:
        document = await self._read(snapshot)
        is_same = await self._has_rows(held.version, snapshot) and not held.version.pending
        if not is_same or not self._current.subject.accepts(_fingerprint(document)):
            return None
        return await self._made(document, held)

    async def _made(self, document: Mapping[str, Any], held: HeldVersion | None) -> Successor:
        part = version_codec.decode_part(document["key"], document["part"].encode())
        here = await self._copied(part)
        return self._current.anew(held, here, document["sql"], _partition_by(document["cut"]))

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
            "cut": [version_codec.term(each) for each in version.partition_by.terms],
            "position": version.position,
            "sql": version.sql,
            "state": state_of(version),
            "definition": version.definition,
        }
        identity, described = snapshot_marks.new_description(self._prefix)
        row = pa.record_batch([pa.array([json.dumps(document).encode()])], schema=_SCHEMA)
        chunk = await self._store.write_chunk(described, 0, _SCHEMA, [row])
        mark = snapshot_marks.mark_of(self._prefix, identity, chunk)
        await self._store.write_chunk(mark, 0, _SCHEMA, [row.slice(0, 0)])

    async def _read(self, snapshot: FoundSnapshot) -> Any:
        rows = [each async for each in self._store.read_chunk(snapshot.description, snapshot.chunk)]
        try:
            return json.loads(rows[0].column(0)[0].as_py())
        except (ValueError, IndexError) as exc:
            raise CarawayError(f"the snapshot '{snapshot.mark}' is damaged: {exc}") from exc

    async def _listing(self) -> SnapshotListing:
        return snapshot_marks.listing(self._prefix, await self._store.keys())

    async def _remove_old(self) -> None:
        """Delete old snapshots, choices, and rows that belong to no snapshot.

        Two schedulers may do this at the same time, and descriptions may be damaged.
        """
        listing = await self._listing()
        kept = listing.kept(self._keep)
        for old in listing.found:
            if old.mark in {each.mark for each in kept}:
                continue
            rows = await self._rows_of(old)
            # Delete the mark first: without it, the snapshot does not exist.
            for key in (old.mark, old.description, rows):
                if key is not None:
                    await self._store.delete(key)
        for choice in listing.choices:
            if choice.at < listing.found[-1].made:
                await self._store.delete(choice.key)
        wanted = {await self._rows_of(each) for each in kept}
        if None in wanted:
            return
        for key in await self._store.keys():
            made_at = making.made_at(key, self._current.name)
            if made_at and key not in wanted and self._current.clock() - made_at > _ORPHANED:
                await self._store.delete(key)

    async def _rows_of(self, snapshot: FoundSnapshot) -> str | None:
        """Return the key of a snapshot's rows, or None if its description cannot be read."""
        try:
            return str((await self._read(snapshot))["key"])
        except CarawayError as exc:
            logger.info("snapshot cannot be read", extra={"cause": exc.message})
            return None


def state_of(version: DatasetVersion) -> str:
    """Return an identifier of the rows that readers see of a version."""
    log = version.read_log
    return f"{version.key}/{log[-1].chunk.checksum if log else ''}"


def _fingerprint(document: Mapping[str, object]) -> str:
    return str(document.get("definition") or document["origin"])


def _partition_by(written: Sequence[Any]) -> PartitionBy:
    return PartitionBy(tuple(map(version_codec.read_term, written)))
