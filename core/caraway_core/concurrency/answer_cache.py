"""Caches recent answers for each holder, limited in bytes and age."""

import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.concurrency.quotas import Quota, QuotaLimits

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")

_LARGEST_SHARE = 8
"""Answers larger than an eighth of the cache are not cached, because they evict too much."""


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The size of a cache in bytes, and how long an answer stays valid; None is without end."""

    max_size_bytes: int = 128 * 1024 * 1024
    ttl_s: float | None = 1.0


class AnswerCache(Generic[Key, Answer]):
    """An LRU cache of whole answers. It is not thread-safe: one event loop uses it.

    Where it is full, the holder with most of it makes room.
    """

    WHAT: ClassVar[str]
    """The name of the answers in messages."""

    def __init__(self, settings: CacheSettings, clock: SecondsClock = time.monotonic) -> None:
        self.settings = settings
        self.requests = self.hits = self.clears = 0
        self.quota: Quota[Key] = Quota(self.WHAT, QuotaLimits(most_bytes=settings.max_size_bytes))
        self._clock = clock
        self._answers: dict[Key, tuple[Answer, float]] = {}

    @property
    def largest_answer_bytes(self) -> int:
        """The largest answer in bytes that is cached."""
        return self.settings.max_size_bytes // _LARGEST_SHARE

    @property
    def size_bytes(self) -> int:
        """The size of all cached answers."""
        return self.quota.size_bytes

    def __len__(self) -> int:
        return len(self._answers)

    def __contains__(self, key: Key) -> bool:
        """Return whether an answer is cached, even an expired one; not counted as a request."""
        return key in self._answers

    def get(self, key: Key) -> Answer | None:
        """Return a valid answer, or None, and count the request."""
        self.requests += 1
        if (entry := self._answers.get(key)) is None:
            return None
        answer, cached_at = entry
        if self.settings.ttl_s is not None and cached_at + self.settings.ttl_s <= self._clock():
            del self._answers[key]
            self.quota.drop(key)
            return None
        self.quota.use(key)
        self.hits += 1
        return answer

    def add(self, holder: str, key: Key, answer: Answer, size_bytes: int, since: int = 0) -> None:
        """Cache an answer, unless it is too large or from before the last `clear`.

        `since` is the value of `clears` when the work for the answer started. If it has changed
        since then, that work may have read old data.
        """
        if since != self.clears or size_bytes > self.largest_answer_bytes:
            return
        for gone in self.quota.add(holder, key, size_bytes):
            del self._answers[gone]
        self._answers[key] = answer, self._clock()

    def clear(self) -> None:
        """Drop all answers, because their data may have changed."""
        self.clears += 1
        self._answers.clear()
        self.quota.clear()
