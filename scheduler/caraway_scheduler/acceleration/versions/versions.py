"""Versions of accelerated datasets in the state store, and how the next one takes its place.

accelerated/DATASET            the version that is read, and what statements may still read
accelerated-parts/DATASET/KEY  the chunks that lie under a key, written once
accelerated-kept/DATASET       see `marks`
accelerating/DATASET           see `claims`
accelerated-reading/OWNER      see `reads`

So a change, which makes a version that differs in its log alone, writes little.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.state import StateEntry, StateStore
from caraway_scheduler.acceleration.versions import version_codec
from caraway_scheduler.acceleration.versions.claims import Claim
from caraway_scheduler.acceleration.versions.marks import Marks
from caraway_scheduler.acceleration.versions.reads import Reads
from caraway_scheduler.acceleration.versions.requests import Requests
from caraway_scheduler.acceleration.versions.version import DatasetVersion, Superseded, VersionPart
from caraway_scheduler.acceleration.versions.wishes import SETTINGS, Wishes

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
    """A version as it was read: with the revision at which it stood in the state store."""

    version: DatasetVersion
    revision: int


@dataclass(frozen=True, slots=True)
class Successor:
    """A version, with what was read to make it: it takes the place of that, or of nothing.

    What was read is one value from the reading to the writing, so a version cannot be written
    over another one than the one it was made of. `Head.next` and `Head.anew` make these.
    """

    before: HeldVersion | None
    version: DatasetVersion


class VersionStore:
    """Reads versions, and has successors take their place.

    Each method raises StateAwayError while the store does not answer.
    """

    def __init__(
        self,
        store: StateStore,
        owner: str,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.marks = Marks(store, clock)
        self.reads = Reads(store, owner)
        self._clock = clock
        self._store = store
        self._owner = owner
        self._parts: dict[TableName, dict[str, VersionPart]] = {}
        self._kept: set[TableName] = set()

    async def current(self, name: TableName) -> HeldVersion | None:
        """Return the version that is read; from then on it counts as kept here.

        Raises:
            CarawayError: it is damaged.
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
            # They went with the version while it was read; there is another one by now.
        raise CarawayError(f"dataset '{name}': what its version is made of is not known any more")

    async def flip(self, name: TableName, successor: Successor) -> HeldVersion | None:
        """Make a version the one that is read; None: what it was made of is not read any more."""
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
        """Remove what is known of keys that no version names."""
        for key in keys:
            entry = await self._store.get(_part_key(name, key))
            if entry is not None:
                await self._store.compare_and_set(
                    _part_key(name, key), None, expected=entry.revision
                )

    def end(self, name: TableName) -> None:
        """Keep a dataset no longer."""
        self._kept.discard(name)

    async def entry(self, name: TableName) -> StateEntry | None:
        """Return a version as it is written, and do not keep it."""
        return await self._store.get(_key(VERSIONS, name))

    async def revisions(self, names: Sequence[TableName]) -> Sequence[int]:
        """Return at which revision the version of each dataset stands; 0: there is none."""
        return await self._store.revisions([_key(VERSIONS, name) for name in names])

    def location(self, entry: StateEntry) -> str:
        """Return where the chunks of a written version lie.

        Raises:
            CarawayError: it cannot be read.
        """
        return version_codec.location(entry.value)

    async def remove(self, name: TableName, revision: int) -> bool:
        """Remove a version, if it still stands at a revision."""
        removed = await self._store.compare_and_set(_key(VERSIONS, name), None, expected=revision)
        return removed is not None

    async def parts(self, name: TableName) -> Sequence[str]:
        """Return the keys of which it is written what lies there."""
        prefix = _part_key(name, "")
        return [entry.key.removeprefix(prefix) for entry in await self._store.scan(prefix)]

    async def names(self) -> Sequence[TableName]:
        """Return the datasets that have a version."""
        return [name_in(entry) for entry in await self._store.scan(VERSIONS)]

    def watch(self) -> AsyncIterator[StateEntry]:
        """Yield the entries of datasets whose version changes."""
        return self._store.watch(VERSIONS)

    def wishes(self, name: TableName) -> Wishes:
        """Return what users asked of a dataset."""
        return Wishes(self._store, name)

    async def forget_settings(self) -> None:
        """Forget what was set of any dataset."""
        for entry in await self._store.scan(SETTINGS):
            await self._store.compare_and_set(entry.key, None, expected=entry.revision)

    def wished(self, prefix: str) -> AsyncIterator[StateEntry]:
        """Yield what users ask of datasets, through any scheduler."""
        return self._store.watch(prefix)

    def requests(self, name: TableName) -> Requests:
        """Return which requests were applied to a dataset."""
        return Requests(self._store, name)

    def claim(self, name: TableName, work: str = "") -> Claim:
        """Return a claim for one task; without the name of a work it is making versions."""
        return Claim(self._store, _key(_CLAIMS, name) + work, self._owner)

    async def _keep(self, name: TableName) -> None:
        """Say that a dataset is kept here, before its version is read (see `unkept`)."""
        before = await self.marks.renew(name)
        if before is not None and abs(self._clock() - before) > _OLD_MARK:
            # Somebody may be about to remove it, at the revision that it has.
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
        # Written before, by an attempt whose answer was lost, it is the same.
        await self._store.compare_and_set(
            _part_key(name, part.key), version_codec.encode_part(part), expected=None
        )


def name_in(entry: StateEntry) -> TableName:
    """Return whose version an entry is."""
    return TableName(unquote(entry.key.removeprefix(VERSIONS)))


def _key(prefix: str, name: TableName) -> str:
    return prefix + quote(name, safe="")


def _part_key(name: TableName, key: str) -> str:
    return f"{_key(_PARTS, name)}/{key}"
