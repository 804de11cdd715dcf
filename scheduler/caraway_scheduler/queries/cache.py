"""Caches recent answers of statements for each principal."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.concurrency.answer_cache import AnswerCache
from caraway_core.ids import CatalogVersion, PrincipalId
from caraway_core.statements import Scalar, Statement

_ENTRY_OVERHEAD = 512
_LARGEST_BODY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A complete answer in the cache. `encoded` holds its bodies by output format."""

    schema: pa.Schema
    batches: tuple[pa.RecordBatch, ...]
    encoded: dict[str, bytes] = field(default_factory=dict)

    def remember_encoded(self, form: str, body: bytes) -> None:
        """Cache the encoded body of a small answer too, to serve repeats by lookup."""
        if len(body) <= _LARGEST_BODY_BYTES:
            self.encoded[form] = body


CacheKey = tuple[PrincipalId, CatalogVersion, str, str]


class ResultsCache(AnswerCache[CacheKey, CachedAnswer]):
    """The cache of complete answers of statements."""

    WHAT = "cached answers"

    @staticmethod
    def key(principal: PrincipalId, version: CatalogVersion, statement: Statement) -> CacheKey:
        """Return the cache key of a statement."""
        values = _spelled(statement.parameters) if statement.parameters else ""
        return (principal, version, statement.sql, values)

    def put(
        self, key: CacheKey, schema: pa.Schema, batches: list[pa.RecordBatch], since: int = 0
    ) -> None:
        """Cache an answer as `add` does."""
        size_bytes = _ENTRY_OVERHEAD + len(key[2]) + sum(batch.nbytes for batch in batches)
        self.add(key[0], key, CachedAnswer(schema, tuple(batches)), size_bytes, since)


def _spelled(parameters: Mapping[str, Scalar]) -> str:
    return json.dumps(parameters, sort_keys=True, default=repr)
