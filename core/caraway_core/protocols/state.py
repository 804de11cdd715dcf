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


class StateWatch(Protocol):
    """The entries with a prefix as they are written; a deletion has an empty value."""

    def __aiter__(self) -> AsyncIterator[StateEntry]: ...

    async def __anext__(self) -> StateEntry: ...

    async def catch_up(self) -> None:
        """Return once the iterating task has processed all that was written before this call.

        It raises what ends the iteration, and
        ShuttingDownError after the store is closed.
        """
        ...


class StateStore(Protocol):
    """A key-value store with compare-and-set, expiry, watches, and append-only logs.

    Keys are `/`-separated paths. A write is durable when its method returns. Revisions increase
    over the whole store, so a later write of any key has a greater one. Every method raises
    StateAwayError if the store does not respond, CarawayError if it fails, and ShuttingDownError
    after it is closed.
    """

    async def check(self) -> Sequence[str]:
        """Check at startup that the store keeps acknowledged writes; return warnings for the user.

        Raises:
            CarawayError: the store cannot be reached, or may lose acknowledged writes.
        """
        ...

    async def get(self, key: str) -> StateEntry | None: ...

    async def revisions(self, keys: Sequence[str]) -> Sequence[int]:
        """Return the revision of each key's live entry, or 0.

        This is cheaper than reading the entries, because no values are transferred.
        """
        ...

    async def scan(self, prefix: str) -> Sequence[StateEntry]:
        """Return the live entries with the prefix, in key order."""
        ...

    async def compare_and_set(
        self, key: str, value: bytes | None, *, expected: int | None, ttl_s: float | None = None
    ) -> int | None:
        """Write an entry, or delete it with the value None, if its revision is `expected`.

        `expected` None requires that the key does not exist. Returns the new revision, or None if
        the revision differs. With `ttl_s` the entry expires after that time. Without, it never
        expires, even if an earlier write set an expiry.

        Raises:
            ValueError: the value is empty, because watchers see a deletion as an empty value.
        """
        ...

    async def append(self, log: str, record: bytes) -> int:
        """Add a record to the end of a log and return its offset, counted from 0."""
        ...

    async def read_log(self, log: str, start: int, limit: int) -> Sequence[bytes]:
        """Return up to `limit` records, starting at the offset `start`."""
        ...

    def watch(self, prefix: str) -> StateWatch:
        """Yield entries with the prefix as they are written; a deletion has an empty value.

        The watch starts with this call, not with the first iteration, so watch first and then scan
        to miss nothing. Expiry is a deletion. Of several quick writes to one key, a watcher may get
        only the last. The watch ends when the store is closed.
        """
        ...

    async def aclose(self) -> None: ...
