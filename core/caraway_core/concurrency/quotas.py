"""Quotas: what each holder, a key or an address, may keep of a table that all share."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.errors import OverloadedError

K = TypeVar("K", bound=Hashable)
_RETRY_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The limits of a table, and of one holder in it; None is no limit.

    `everybody` is the holder that requests have where no keys are configured: it may fill the
    table.
    """

    most: int | None = None
    most_each: int | None = None
    most_bytes: int | None = None
    most_bytes_each: int | None = None
    everybody: str | None = None

    def each(self, holder: str) -> tuple[int | None, int | None]:
        """Return how many entries and bytes one holder may have."""
        if holder == self.everybody:
            return None, None
        return self.most_each, self.most_bytes_each


@dataclass(slots=True)
class _Entry:
    holder: str
    size_bytes: int
    used_at: float


class _Held(Generic[K]):
    """The entries of one holder, the one that was used least recently first."""

    __slots__ = ("keys", "size_bytes")

    def __init__(self) -> None:
        self.keys: OrderedDict[K, None] = OrderedDict()
        self.size_bytes = 0


class Quota(Generic[K]):
    """Counts the entries of a shared table by holder, and says which have to make room.

    A holder above its limit gives up its own entry that was used least recently. Where the table is
    full, the holder that has most of it does, so that no holder takes what the others have. With
    `may_go`, only entries that it accepts are given up; where there is none, the new entry is
    refused. Not thread-safe.
    """

    def __init__(
        self,
        what: str,
        limits: QuotaLimits,
        *,
        kept_s: float | None = None,
        may_go: Callable[[K], bool] | None = None,
        clock: SecondsClock = time.monotonic,
    ) -> None:
        self.what = what
        self.limits = limits
        self.size_bytes = 0
        self.evictions = 0
        self.refusals = 0
        self._kept_s = kept_s
        self._may_go = may_go
        self._clock = clock
        self._entries: dict[K, _Entry] = {}
        self._held: dict[str, _Held[K]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    @property
    def holders(self) -> int:
        """The number of holders that have an entry."""
        return len(self._held)

    @property
    def most_held(self) -> int:
        """The number of entries of the holder with the most."""
        return max((len(each.keys) for each in self._held.values()), default=0)

    def add(self, holder: str, key: K, size_bytes: int = 0) -> list[K]:
        """Count an entry, in place of the one with this key; return the keys that have to go.

        Raises:
            OverloadedError: it is above a limit, and no entry may go for it.
        """
        self.drop(key)
        gone = self._make_room(holder, size_bytes)
        self.count(holder, key, size_bytes)
        self.evictions += len(gone)
        return list(gone)

    def count(self, holder: str, key: K, size_bytes: int = 0) -> None:
        """Count an entry that is there already, whatever the limits are."""
        self.drop(key)
        used_at = self._clock() if self._kept_s is not None else 0.0
        self._put(key, _Entry(holder, size_bytes, used_at))

    def surplus(self) -> list[K]:
        """Return the oldest entries of each holder that is above its limits; they stay counted."""
        found: list[K] = []
        for holder, held in self._held.items():
            most, most_bytes = self.limits.each(holder)
            count, size = len(held.keys), held.size_bytes
            for key in held.keys:
                if not (_is_above(count, most) or _is_above(size, most_bytes)):
                    break
                count, size = count - 1, size - self._entries[key].size_bytes
                found.append(key)
        return found

    def use(self, key: K) -> None:
        """Make an entry the one that was used last."""
        entry = self._entries.get(key)
        if entry is not None:
            self._held[entry.holder].keys.move_to_end(key)
            if self._kept_s is not None:
                entry.used_at = self._clock()

    def drop(self, key: K) -> None:
        """Forget an entry, if it is counted."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        held = self._held[entry.holder]
        del held.keys[key]
        held.size_bytes -= entry.size_bytes
        self.size_bytes -= entry.size_bytes
        if not held.keys:
            del self._held[entry.holder]

    def clear(self) -> None:
        """Forget all entries."""
        self._entries.clear()
        self._held.clear()
        self.size_bytes = 0

    def drop_idle(self) -> list[K]:
        """Forget the entries that were not used for `kept_s`, and return their keys."""
        if self._kept_s is None:
            return []
        oldest = self._clock() - self._kept_s
        idle: list[K] = []
        for held in self._held.values():
            for key in held.keys:
                if self._entries[key].used_at >= oldest:
                    break
                idle.append(key)
        for key in idle:
            self.drop(key)
        return idle

    def _make_room(self, holder: str, size_bytes: int) -> dict[K, _Entry]:
        gone: dict[K, _Entry] = {}
        while (victim := self._above(holder, size_bytes)) is not None:
            key = self._oldest(victim)
            if key is None:
                for each, entry in reversed(gone.items()):
                    self._put(each, entry)
                    self._held[entry.holder].keys.move_to_end(each, last=False)
                self.refusals += 1
                raise OverloadedError(self._refusal(victim == holder), _RETRY_AFTER_S)
            gone[key] = self._entries[key]
            self.drop(key)
        return gone

    def _above(self, holder: str, size_bytes: int) -> str | None:
        """Return the holder that has to make room for a new entry; None if there is room."""
        limits, held = self.limits, self._held.get(holder)
        most_each, most_bytes_each = limits.each(holder)
        count, size = (len(held.keys), held.size_bytes) if held is not None else (0, 0)
        if _is_above(count + 1, most_each) or _is_above(size + size_bytes, most_bytes_each):
            return holder
        if _is_above(len(self) + 1, limits.most):
            return max(self._held, key=lambda each: len(self._held[each].keys), default=holder)
        if _is_above(self.size_bytes + size_bytes, limits.most_bytes):
            return max(self._held, key=lambda each: self._held[each].size_bytes, default=holder)
        return None

    def _put(self, key: K, entry: _Entry) -> None:
        held = self._held.get(entry.holder)
        if held is None:
            held = self._held[entry.holder] = _Held()
        held.keys[key] = None
        held.size_bytes += entry.size_bytes
        self.size_bytes += entry.size_bytes
        self._entries[key] = entry

    def _oldest(self, holder: str) -> K | None:
        held = self._held.get(holder)
        if held is None:
            return None
        may_go = self._may_go
        return next((key for key in held.keys if may_go is None or may_go(key)), None)

    def _refusal(self, is_own: bool) -> str:
        if is_own:
            return f"this caller has too many {self.what}; close some, or try again later"
        return f"there are too many {self.what} of all callers; try again later"


def _is_above(number: int, most: int | None) -> bool:
    return most is not None and number > most
