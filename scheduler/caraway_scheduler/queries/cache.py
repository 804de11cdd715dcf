"""Caches recent answers for each principal, limited in bytes and age."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.ids import CatalogVersion, PrincipalId
from caraway_core.statements import Scalar, Statement

_LARGEST_SHARE = 8
"""Answers larger than an eighth of the cache are not cached, because they evict too much."""
_ENTRY_OVERHEAD = 512


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Settings of the results cache: its size in bytes, and how long an answer stays valid."""

    enabled: bool = True
    max_size_bytes: int = 128 * 1024 * 1024
    ttl_s: float = 1.0


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A complete answer in the cache. `encoded` holds its bodies by output format."""

    schema: pa.Schema
    batches: tuple[pa.RecordBatch, ...]
    expires_at: float
    encoded: dict[str, bytes] = field(default_factory=dict)


CacheKey = tuple[PrincipalId, CatalogVersion, str, str]


class ResultsCache:
    """An LRU cache of complete answers. It is not thread-safe: one event loop uses it.

    Where it is full, the principal with most of it makes room.
    """

    def __init__(self, settings: CacheSettings, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.requests = 0
        self.hits = 0
        self.clears = 0
        self.quota: Quota[CacheKey] = Quota(
            "cached answers", QuotaLimits(most_bytes=settings.max_size_bytes)
        )
        self._clock = clock
        self._answers: dict[CacheKey, CachedAnswer] = {}

    @staticmethod
    def key(principal: PrincipalId, version: CatalogVersion, statement: Statement) -> CacheKey:
        """Return the cache key of a statement."""
        values = _spelled(statement.parameters) if statement.parameters else ""
        return (principal, version, statement.sql, values)

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

    def has(self, key: CacheKey) -> bool:
        """Return whether an answer is cached, even an expired one; not counted as a request."""
        return key in self._answers

    def get(self, key: CacheKey) -> CachedAnswer | None:
        """Return a valid answer, or None, and count the request."""
        self.requests += 1
        answer = self._answers.get(key)
        if answer is None:
            return None
        if answer.expires_at <= self._clock():
            self._drop(key)
            return None
        self.quota.use(key)
        self.hits += 1
        return answer

    def put(
        self, key: CacheKey, schema: pa.Schema, batches: list[pa.RecordBatch], since: int = 0
    ) -> None:
        """Cache an answer, unless it is too large or its statement started before the last `clear`.

        `since` is the value of `clears` when the statement started. If it has changed since then,
        the statement may have read old data.
        """
        if since != self.clears:
            return
        size = _ENTRY_OVERHEAD + len(key[2]) + sum(batch.nbytes for batch in batches)
        if size > self.largest_answer_bytes:
            return
        for gone in self.quota.add(key[0], key, size):
            del self._answers[gone]
        expires_at = self._clock() + self.settings.ttl_s
        self._answers[key] = CachedAnswer(schema, tuple(batches), expires_at)

    def remember_encoded(self, key: CacheKey, answer: CachedAnswer, form: str, body: bytes) -> None:
        """Cache the encoded body of a small answer too, to serve repeats by lookup."""
        if self._answers.get(key) is answer and len(body) <= 64 * 1024:
            answer.encoded[form] = body

    def clear(self) -> None:
        """Drop all answers after a write or a change of the catalog."""
        self.clears += 1
        self._answers.clear()
        self.quota.clear()

    def _drop(self, key: CacheKey) -> None:
        self._answers.pop(key, None)
        self.quota.drop(key)


def _spelled(parameters: Mapping[str, Scalar]) -> str:
    return json.dumps(parameters, sort_keys=True, default=repr)
