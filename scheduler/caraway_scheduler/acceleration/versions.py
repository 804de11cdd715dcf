"""Versions of accelerated datasets in the state store: the one that is read, who makes the next.

accelerated/DATASET       the version that is read, and those that statements may still read
accelerating/DATASET      which scheduler makes the next one; soon gone without renewal
"""

import base64
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, unquote

import pyarrow as pa

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.state import Entry, StateStore

VERSIONS = "accelerated/"
_CLAIMS = "accelerating/"
CLAIM_TTL_S = 10.0
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Superseded:
    """A version that is not read by new statements any more."""

    key: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Version:
    """What readers see of a dataset. `sql` is what it was made by, of the source `origin`.

    `location` is where its chunks lie: a version that was made elsewhere is not for us.
    """

    number: int
    key: str
    location: str
    schema: pa.Schema
    chunks: tuple[ChunkInfo, ...]
    made_at: datetime
    sql: str
    origin: str
    superseded: tuple[Superseded, ...] = ()

    @property
    def rows(self) -> int:
        return sum(chunk.row_count for chunk in self.chunks)

    @property
    def size_bytes(self) -> int:
        return sum(chunk.size_bytes for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version, and the revision at which it stands in the state store."""

    version: Version
    revision: int


class Versions:
    """Reads and flips versions; every flip names the revision that was read before.

    Each method raises StateAwayError while the store does not answer.
    """

    def __init__(self, store: StateStore, owner: str) -> None:
        self._store = store
        self._owner = owner.encode()

    async def current(self, name: TableName) -> HeldVersion | None:
        entry = await self._store.get(_key(VERSIONS, name))
        return HeldVersion(_decode(entry.value), entry.revision) if entry else None

    async def flip(
        self, name: TableName, held: HeldVersion | None, version: Version
    ) -> HeldVersion | None:
        """Make a version the one that is read; None: somebody else has made another one."""
        revision = await self._store.compare_and_set(
            _key(VERSIONS, name), _encode(version), expected=held.revision if held else None
        )
        if revision is not None:
            return HeldVersion(version, revision)
        # The answer to an earlier attempt may have been lost.
        standing = await self.current(name)
        return standing if standing is not None and standing.version == version else None

    async def forget(self, name: TableName, held: HeldVersion) -> None:
        await self._store.compare_and_set(_key(VERSIONS, name), None, expected=held.revision)

    async def names(self) -> Sequence[TableName]:
        """Return the datasets that have a version."""
        return [name_in(entry) for entry in await self._store.scan(VERSIONS)]

    def watch(self) -> AsyncIterator[Entry]:
        """Yield the entries of datasets whose version changes."""
        return self._store.watch(VERSIONS)

    async def claim(self, name: TableName) -> bool:
        """Become, or stay, the one scheduler that makes the next version; renew it in time."""
        key = _key(_CLAIMS, name)
        entry = await self._store.get(key)
        if entry is not None and entry.value != self._owner:
            return False
        expected = entry.revision if entry else None
        written = await self._store.compare_and_set(
            key, self._owner, expected=expected, ttl_s=CLAIM_TTL_S
        )
        return written is not None

    async def release(self, name: TableName) -> None:
        key = _key(_CLAIMS, name)
        entry = await self._store.get(key)
        if entry is not None and entry.value == self._owner:
            await self._store.compare_and_set(key, None, expected=entry.revision)


def name_in(entry: Entry) -> TableName:
    """Return whose version an entry is."""
    return TableName(unquote(entry.key.removeprefix(VERSIONS)))


def _key(prefix: str, name: TableName) -> str:
    return prefix + quote(name, safe="")


def _encode(version: Version) -> bytes:
    document = {
        "format": _FORMAT,
        "number": version.number,
        "key": version.key,
        "location": version.location,
        "schema": base64.b64encode(version.schema.serialize()).decode(),
        "chunks": [[c.index, c.row_count, c.size_bytes, c.sha256] for c in version.chunks],
        "made_at": version.made_at.isoformat(),
        "sql": version.sql,
        "origin": version.origin,
        "superseded": [[each.key, each.since.isoformat()] for each in version.superseded],
    }
    return json.dumps(document, separators=(",", ":")).encode()


def _decode(stored: bytes) -> Version:
    try:
        document = json.loads(stored)
        if document["format"] > _FORMAT:
            raise CarawayError(
                "a newer version of Caraway made this version of an accelerated dataset; run that"
            )
        return Version(
            document["number"],
            document["key"],
            document["location"],
            pa.ipc.read_schema(pa.py_buffer(base64.b64decode(document["schema"]))),
            tuple(ChunkInfo(*chunk) for chunk in document["chunks"]),
            datetime.fromisoformat(document["made_at"]),
            document["sql"],
            document["origin"],
            tuple(
                Superseded(key, datetime.fromisoformat(since))
                for key, since in document["superseded"]
            ),
        )
    except (ValueError, KeyError, TypeError, pa.ArrowException) as exc:
        raise CarawayError(f"the version of an accelerated dataset is damaged: {exc}") from exc
