"""Records which accelerated datasets are in use, so that orphan collection spares them.

accelerated-kept/DATASET       when a scheduler last reported the dataset as in its manifest
"""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, unquote

from caraway_core.concurrency.clocks import DateClock
from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.state import StateStore

_KEPT = "accelerated-kept/"
_TRIES = 5


@dataclass(frozen=True, slots=True)
class UsageMark:
    """When a dataset was last reported as in use, with the revision of that entry."""

    at: datetime
    revision: int


class UsageMarks:
    """Reads and writes the marks; methods raise StateAwayError while the store is away."""

    def __init__(self, store: StateStore, clock: DateClock) -> None:
        self._store = store
        self._clock = clock

    async def read(self, name: TableName) -> UsageMark | None:
        """Return the mark of a dataset, or None."""
        entry = await self._store.get(_key(name))
        if entry is None:
            return None
        try:
            return UsageMark(datetime.fromisoformat(entry.value.decode()), entry.revision)
        except ValueError as exc:
            raise CarawayError(
                f"dataset '{name}': its entry accelerated-kept/ in the state store is damaged"
            ) from exc

    async def renew(self, name: TableName) -> datetime | None:
        """Mark a dataset as in use now; returns the previous time, or None."""
        value = self._clock().isoformat().encode()
        for _ in range(_TRIES):
            before = await self.read(name)
            expected = before.revision if before else None
            written = await self._store.compare_and_set(_key(name), value, expected=expected)
            if written is not None:
                return before.at if before else None
        raise CarawayError(f"dataset '{name}': other schedulers keep renewing its mark; try again")

    async def remove(self, name: TableName, mark: UsageMark) -> bool:
        """Delete a mark, unless it was renewed."""
        removed = await self._store.compare_and_set(_key(name), None, expected=mark.revision)
        return removed is not None

    async def names(self) -> set[TableName]:
        """Return the datasets that have a mark."""
        entries = await self._store.scan(_KEPT)
        return {TableName(unquote(entry.key.removeprefix(_KEPT))) for entry in entries}


def _key(name: TableName) -> str:
    return _KEPT + quote(name, safe="")
