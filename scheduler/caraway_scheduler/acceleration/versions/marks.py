"""Which accelerated datasets are still kept: their schedulers say so from time to time.

accelerated-kept/DATASET       when a scheduler last said that the dataset is in its manifest
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, unquote

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.state import StateStore

_KEPT = "accelerated-kept/"
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Mark:
    """When a dataset was last said to be kept, and the revision of that."""

    at: datetime
    revision: int


class Marks:
    """Each method raises StateAwayError while the store does not answer."""

    def __init__(self, store: StateStore, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock

    async def read(self, name: TableName) -> Mark | None:
        entry = await self._store.get(_key(name))
        if entry is None:
            return None
        try:
            return Mark(datetime.fromisoformat(entry.value.decode()), entry.revision)
        except ValueError as exc:
            raise CarawayError(f"dataset '{name}': the mark that it is kept is damaged") from exc

    async def renew(self, name: TableName) -> datetime | None:
        """Say that a dataset is kept; returns when that was last said before, if it was."""
        value = self._clock().isoformat().encode()
        for _ in range(_TRIES):
            before = await self.read(name)
            expected = before.revision if before else None
            written = await self._store.compare_and_set(_key(name), value, expected=expected)
            if written is not None:
                return before.at if before else None
        raise CarawayError(f"dataset '{name}': others say all the time that they keep it")

    async def remove(self, name: TableName, mark: Mark) -> bool:
        """Forget a dataset, unless it is kept again."""
        removed = await self._store.compare_and_set(_key(name), None, expected=mark.revision)
        return removed is not None

    async def names(self) -> set[TableName]:
        entries = await self._store.scan(_KEPT)
        return {TableName(unquote(entry.key.removeprefix(_KEPT))) for entry in entries}


def _key(name: TableName) -> str:
    return _KEPT + quote(name, safe="")
