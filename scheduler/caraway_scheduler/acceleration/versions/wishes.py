"""What users asked of a dataset and were answered for: written down before the answer.

accelerated-asked/DATASET      a refresh that was asked for and is not done yet
accelerated-settings/DATASET   the refresh_sql that was set, while a scheduler of the cluster lives

So a refresh outlives the scheduler that took it, and all schedulers load by the same statement.
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
"""Settings are forgotten when no scheduler has renewed them for so long."""
_FIELDS = ("refresh_sql", "refresh_mode", "refresh_jitter_max")
_TRIES = 16


@dataclass(frozen=True, slots=True)
class Ask:
    """A refresh that was asked for, with the body of the request; a later one replaces it."""

    id: str
    body: Mapping[str, object]


class Wishes:
    """Those of one dataset. Each method raises StateAwayError while the store is away."""

    def __init__(self, store: StateStore, name: TableName) -> None:
        self._store = store
        self._asked = ASKED + quote(name, safe="")
        self._settings = SETTINGS + quote(name, safe="")

    async def ask(self, body: Mapping[str, object]) -> Ask:
        """Write down that a refresh was asked for."""
        kept = {key: body[key] for key in _FIELDS if body.get(key) is not None}
        ask = Ask(uuid.uuid4().hex, kept)
        await self._write(self._asked, {"id": ask.id, "body": kept}, _KEPT_S)
        return ask

    async def asked(self) -> Ask | None:
        """Return the refresh that is not done yet."""
        entry = await self._store.get(self._asked)
        return ask_of(entry) if entry is not None else None

    async def stands(self, ask_id: str) -> bool:
        """Return whether nobody has done a refresh yet, and no later one took its place."""
        ask = await self.asked()
        return ask is not None and ask.id == ask_id

    async def done(self, ask_id: str) -> None:
        """Note that a refresh is done."""
        entry = await self._store.get(self._asked)
        if entry is not None and ask_of(entry).id == ask_id:
            await self._store.compare_and_set(self._asked, None, expected=entry.revision)

    async def set_sql(self, sql: str, manifest: str) -> None:
        """Write down by which statement to load, as long as the manifest says the same."""
        await self._write(self._settings, {"sql": sql, "manifest": manifest}, SETTINGS_TTL_S)

    async def sql(self, manifest: str) -> str | None:
        """Return the statement that was set, and keep it for longer."""
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


def manifest(origin: str, sql: str) -> str:
    """Return what written settings belong to: with another manifest they do not count."""
    return f"{origin}\n{sql}"


def name_in(entry: StateEntry) -> TableName:
    """Return the dataset that an entry is about."""
    return TableName(unquote(entry.key.partition("/")[2]))


def ask_of(entry: StateEntry) -> Ask:
    document = json.loads(entry.value)
    return Ask(document["id"], document["body"])


def sql_of(entry: StateEntry, manifest: str) -> str | None:
    """Return the statement of written settings, unless the manifest was another one."""
    document = json.loads(entry.value)
    return str(document["sql"]) if document["manifest"] == manifest else None
