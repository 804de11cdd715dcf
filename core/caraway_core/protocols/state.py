"""The protocol of state stores: registrations, placement, jobs and offsets that persist."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StateEntry:
    """A value and the revision at which it was written; revisions only grow."""

    key: str
    value: bytes
    revision: int


class StateStore(Protocol):
    """Keys with values, compare-and-set, expiry, watching, and append-only logs.

    Keys are `/`-separated paths. What a write method returned from is durable. Revisions grow
    over the whole store: a later write of any key has a greater one. Each method raises
    StateAwayError when the store does not answer, CarawayError when it cannot do its work, and
    ShuttingDownError once it is closed.
    """

    async def check(self) -> Sequence[str]:
        """Find out at start whether the store can be trusted; returns warnings for the user.

        Raises:
            CarawayError: it cannot be reached, or would lose what it acknowledged.
        """
        ...

    async def get(self, key: str) -> StateEntry | None: ...

    async def revisions(self, keys: Sequence[str]) -> Sequence[int]:
        """Return the revision of each key's live entry, 0 where there is none.

        Cheaper than reading the entries: no value travels.
        """
        ...

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        """Return the live entries under the prefix, in key order."""
        ...

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        """Write, or delete with a value of None, if the key stands at revision `expected`.

        `expected` None asks that the key is absent. Returns the new revision, or None when the
        key stood at another one. With `ttl_s` the entry is gone after that time; without, it
        stays, also when an earlier write of the key had one.

        Raises:
            ValueError: the value is empty, which is how watchers are told of a deletion.
        """
        ...

    async def append(self, log: str, record: bytes) -> int:
        """Add a record to the end of a log and return its offset, counted from 0."""
        ...

    async def read_log(self, log: str, start: int, limit: int) -> Sequence[bytes]:
        """Return up to `limit` records from the offset `start` on."""
        ...

    def watch(self, prefix: str) -> AsyncIterator[StateEntry]:
        """Yield entries under the prefix as they are written; a deletion has an empty value.

        Begins with this call, not with the first iteration: watch, then scan, and nothing is
        missed. Expiry is a deletion. Of writes of one key that follow each other closely, a
        watcher may get only the last. Ends when the store is closed.
        """
        ...

    async def aclose(self) -> None: ...
