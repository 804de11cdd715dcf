"""The seam to the store that survives a process: registrations, placement, jobs, offsets."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """A value and the revision at which it was written; revisions only grow."""

    key: str
    value: bytes
    revision: int


class StateStore(Protocol):
    """Keys with values, compare-and-set, expiry, watching, and append-only logs.

    Keys are `/`-separated paths. What a write method returned from is durable.
    """

    async def get(self, key: str) -> Entry | None: ...

    async def scan(self, prefix: str) -> Sequence[Entry]:
        """Return the live entries under the prefix, in key order."""
        ...

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        """Write, or delete with a value of None, if the key stands at revision `expected`.

        `expected` None asks that the key is absent. Returns the new revision, or None when the
        key stood at another one. With `ttl_s` the entry is gone after that time.
        """
        ...

    async def append(self, log: str, record: bytes) -> int:
        """Add a record to the end of a log and return its offset, counted from 0."""
        ...

    async def read_log(self, log: str, start: int, limit: int) -> Sequence[bytes]: ...

    def watch(self, prefix: str) -> AsyncIterator[Entry]:
        """Yield entries under the prefix as they are written; a deletion has an empty value."""
        ...

    async def aclose(self) -> None: ...
