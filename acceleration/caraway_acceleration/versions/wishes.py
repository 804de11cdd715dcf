"""Stores requests of users for a dataset, before they are answered.

  accelerated-asked/DATASET      a requested refresh that is not done yet
  accelerated-settings/DATASET   a changed refresh_sql, while any scheduler of the cluster runs

So a refresh survives the scheduler that accepted it, and all schedulers load with the same
statement.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from caraway_core.errors import UnavailableError
from caraway_core.ids import TableName
from caraway_core.protocols.state import StateEntry, StateStore

ASKED, SETTINGS = "accelerated-asked/", "accelerated-settings/"
_KEPT_S = 7 * 86400.0
SETTINGS_TTL_S = 60.0
"""Settings expire if no scheduler renews them for this many seconds."""
_FIELDS = ("refresh_sql", "refresh_mode", "refresh_jitter_max")
_TRIES = 16


@dataclass(frozen=True, slots=True)
class Ask:
    """A requested refresh with the body of the request; a later request replaces it."""

    id: str
    body: Mapping[str, object]


class Wishes:
    """The requests of users for one dataset.

    Methods raise StateAwayError while the state store is away.
    """

    def __init__(self, store: StateStore, name: TableName) -> None:
        self._store = store
        self._asked = ASKED + quote(name, safe="")
        self._settings = SETTINGS + quote(name, safe="")

    async def ask(self, body: Mapping[str, object]) -> Ask:
        """Record that a refresh was requested."""
        kept = {key: body[key] for key in _FIELDS if body.get(key) is not None}
        ask = Ask(uuid.uuid4().hex, kept)
        await self._write(self._asked, {"id": ask.id, "body": kept}, _KEPT_S)
        return ask

    async def asked(self) -> Ask | None:
        """Return the requested refresh that is not done yet, or None."""
        entry = await self._store.get(self._asked)
        return ask_of(entry) if entry is not None else None

    async def stands(self, ask_id: str) -> bool:
        """Return whether a requested refresh is neither done nor replaced."""
        ask = await self.asked()
        return ask is not None and ask.id == ask_id

    async def done(self, ask_id: str) -> None:
        """Delete the record of a refresh that is done."""
        entry = await self._store.get(self._asked)
        if entry is not None and ask_of(entry).id == ask_id:
            await self._store.compare_and_set(self._asked, None, expected=entry.revision)

    async def set_sql(self, sql: str, manifest: "ManifestNames") -> None:
        """Store the statement to load with; it applies while the manifest is unchanged."""
        names = {"manifest": manifest.earlier, "definition": manifest.current}
        await self._write(self._settings, {"sql": sql, **names}, SETTINGS_TTL_S)

    async def sql(self, manifest: "ManifestNames") -> str | None:
        """Return the stored statement, and renew it."""
        entry = await self._store.get(self._settings)
        if entry is None or (found := sql_of(entry, manifest)) is None:
            return None
        await self._store.compare_and_set(
            entry.key, entry.value, expected=entry.revision, ttl_s=SETTINGS_TTL_S
        )
        return found

    async def _write(self, key: str, document: Mapping[str, object], ttl_s: float) -> None:
        value = json.dumps(document).encode()
        for _ in range(_TRIES):
            entry = await self._store.get(key)
            expected = entry.revision if entry is not None else None
            if await self._store.compare_and_set(key, value, expected=expected, ttl_s=ttl_s):
                return
        raise UnavailableError("too many requests at once for one dataset; send it again")


@dataclass(frozen=True, slots=True)
class ManifestNames:
    """The identity of a manifest: the one of this release, and what the release before reads."""

    current: str
    earlier: str


def manifest(names: Mapping[str, str], sql: str) -> ManifestNames:
    """Return the identity of the manifest to which stored settings belong.

    `names` are those of the dataset's definition, see `Subject.names`.
    """
    return ManifestNames(f"{names['definition']}\n{sql}", f"{names['origin']}\n{sql}")


def name_in(entry: StateEntry) -> TableName:
    """Return the dataset of an entry."""
    return TableName(unquote(entry.key.partition("/")[2]))


def ask_of(entry: StateEntry) -> Ask:
    """Decode a requested refresh."""
    document = json.loads(entry.value)
    return Ask(document["id"], document["body"])


def sql_of(entry: StateEntry, manifest: ManifestNames) -> str | None:
    """Return the statement of stored settings, or None if they belong to another manifest."""
    document = json.loads(entry.value)
    found = document.get("definition", document["manifest"])
    return str(document["sql"]) if found in (manifest.current, manifest.earlier) else None
