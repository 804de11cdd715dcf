"""Stores versions of accelerated datasets, and replaces them with their successors.

  accelerated/DATASET            the current version, and keys that statements may still read
  accelerated-parts/DATASET/KEY  the chunks of a part, written once
  accelerated-kept/DATASET       see `marks`
  accelerating/DATASET           see `claims`
  accelerated-reading/OWNER      see `reads`

A change only extends the log, so publishing it writes little.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

from caraway_acceleration.versions import version_codec
from caraway_acceleration.versions.reads import Reads
from caraway_acceleration.versions.requests import Requests
from caraway_acceleration.versions.usage_marks import UsageMarks
from caraway_acceleration.versions.version import DatasetVersion, Superseded, VersionPart
from caraway_acceleration.versions.wishes import SETTINGS, Wishes
from caraway_core.concurrency.clocks import DateClock
from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.state import StateEntry, StateStore
from caraway_scheduler.coordination.claims import Claim

__all__ = [
    "DatasetVersion",
    "HeldVersion",
    "Successor",
    "Superseded",
    "VersionPart",
    "VersionStore",
    "name_in",
]

VERSIONS = "accelerated/"
_PARTS = "accelerated-parts/"
_CLAIMS = "accelerating/"
_READS = 5
_OLD_MARK = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version with the revision at which it was read from the state store."""

    version: DatasetVersion
    revision: int


@dataclass(frozen=True, slots=True)
class Successor:
    """A new version, with the version that it replaces, if any.

    `before` is the exact value that was read to make the new version. So a version can only replace
    the one that it was made from. `CurrentVersion.next` and `CurrentVersion.anew` create
    successors.
    """

    before: HeldVersion | None
    version: DatasetVersion


class VersionStore:
    """Reads versions, and replaces them with their successors.

    Each method raises StateAwayError while the state store is away.
    """

    def __init__(
        self,
        store: StateStore,
        owner: str,
        clock: DateClock = lambda: datetime.now(UTC),
    ) -> None:
        self.marks = UsageMarks(store, clock)
        self.reads = Reads(store, owner)
        self._clock = clock
        self._store = store
        self._owner = owner
        self._parts: dict[TableName, dict[str, VersionPart]] = {}
        self._kept: set[TableName] = set()

    async def current(self, name: TableName) -> HeldVersion | None:
        """Return the current version, and mark the dataset as in use.

        Raises:
            CarawayError: the version is damaged.
        """
        if name not in self._kept:
            await self._keep(name)
        for _ in range(_READS):
            entry = await self.entry(name)
            if entry is None:
                return None
            parts = await self._read(name, version_codec.part_keys(entry.value))
            if parts is not None:
                return HeldVersion(version_codec.decode(entry.value, parts), entry.revision)
            # The parts were removed with their version during the read; there is a newer version
            # now.
        raise CarawayError(
            f"dataset '{name}': the parts of its version are missing in the state store"
        )

    async def flip(self, name: TableName, successor: Successor) -> HeldVersion | None:
        """Publish a version; returns None if its predecessor is not current any more."""
        version, before = successor.version, successor.before
        known = self._parts.setdefault(name, {})
        for part in version.parts:
            if part.key not in known:
                await self._write(name, part)
        self._parts[name] = {part.key: part for part in version.parts}
        revision = await self._store.compare_and_set(
            _key(VERSIONS, name),
            version_codec.encode(version),
            expected=before.revision if before else None,
        )
        if revision is not None:
            return HeldVersion(version, revision)
        # The answer to an earlier attempt may have been lost.
        standing = await self.current(name)
        return standing if standing is not None and standing.version == version else None

    async def forget_parts(self, name: TableName, keys: Iterable[str]) -> None:
        """Delete the parts with these keys, which no version names."""
        for key in keys:
            entry = await self._store.get(_part_key(name, key))
            if entry is not None:
                await self._store.compare_and_set(
                    _part_key(name, key), None, expected=entry.revision
                )

    def end(self, name: TableName) -> None:
        """Stop marking a dataset as in use."""
        self._kept.discard(name)

    async def entry(self, name: TableName) -> StateEntry | None:
        """Return the encoded version of a dataset, without marking it as in use."""
        return await self._store.get(_key(VERSIONS, name))

    async def revisions(self, names: Sequence[TableName]) -> Sequence[int]:
        """Return the revision of each dataset's version; 0 if it has none."""
        return await self._store.revisions([_key(VERSIONS, name) for name in names])

    def location(self, entry: StateEntry) -> str:
        """Return the location of an encoded version.

        Raises:
            CarawayError: the version cannot be read.
        """
        return version_codec.location(entry.value)

    async def remove(self, name: TableName, revision: int) -> bool:
        """Delete a version, if it is still at this revision."""
        removed = await self._store.compare_and_set(_key(VERSIONS, name), None, expected=revision)
        return removed is not None

    async def parts(self, name: TableName) -> Sequence[str]:
        """Return the keys of all stored parts of a dataset."""
        prefix = _part_key(name, "")
        return [entry.key.removeprefix(prefix) for entry in await self._store.scan(prefix)]

    async def names(self) -> Sequence[TableName]:
        """Return the datasets that have a version."""
        return [name_in(entry) for entry in await self._store.scan(VERSIONS)]

    def watch(self) -> AsyncIterator[StateEntry]:
        """Yield the entries of datasets whose version changes."""
        return self._store.watch(VERSIONS)

    def wishes(self, name: TableName) -> Wishes:
        """Return the requests of users for a dataset."""
        return Wishes(self._store, name)

    async def forget_settings(self) -> None:
        """Delete the stored settings of all datasets."""
        for entry in await self._store.scan(SETTINGS):
            await self._store.compare_and_set(entry.key, None, expected=entry.revision)

    def wished(self, prefix: str) -> AsyncIterator[StateEntry]:
        """Yield the requests that users make through any scheduler."""
        return self._store.watch(prefix)

    def requests(self, name: TableName) -> Requests:
        """Return the applied change requests of a dataset."""
        return Requests(self._store, name)

    def claim(self, name: TableName, work: str = "") -> Claim:
        """Return a claim on named work for one task; without a name, on making versions."""
        return Claim(self._store, _key(_CLAIMS, name) + work, self._owner)

    async def _keep(self, name: TableName) -> None:
        """Mark a dataset as in use before its version is read; see `upkeep/orphans`."""
        before = await self.marks.renew(name)
        if before is not None and abs(self._clock() - before) > _OLD_MARK:
            # A collector may be about to delete it at its current revision, so write a new one.
            entry = await self.entry(name)
            if entry is not None:
                await self._store.compare_and_set(entry.key, entry.value, expected=entry.revision)
        self._kept.add(name)

    async def _read(self, name: TableName, keys: Sequence[str]) -> dict[str, VersionPart] | None:
        known = self._parts.get(name, {})
        parts: dict[str, VersionPart] = {}
        for key in keys:
            part = known.get(key)
            if part is None:
                entry = await self._store.get(_part_key(name, key))
                if entry is None:
                    return None
                part = version_codec.decode_part(key, entry.value)
            parts[key] = part
        self._parts[name] = parts
        return parts

    async def _write(self, name: TableName, part: VersionPart) -> None:
        # If an earlier attempt wrote it and its answer was lost, the content is the same.
        await self._store.compare_and_set(
            _part_key(name, part.key), version_codec.encode_part(part), expected=None
        )


def name_in(entry: StateEntry) -> TableName:
    """Return the dataset of an entry."""
    return TableName(unquote(entry.key.removeprefix(VERSIONS)))


def _key(prefix: str, name: TableName) -> str:
    return prefix + quote(name, safe="")


def _part_key(name: TableName, key: str) -> str:
    return f"{_key(_PARTS, name)}/{key}"
