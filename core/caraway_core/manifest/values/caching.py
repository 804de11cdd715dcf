"""The section `runtime.caching` of a manifest, and its old form."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from caraway_core.manifest.sections import Duration, Section, Size, key

MIB = 1024 * 1024
EvictionPolicy = Literal["lru", "tiny_lfu"]
HashingAlgorithm = Literal[
    "xxh3", "xxh32", "xxh64", "xxh128", "ahash", "siphash", "blake3", "sha256"
]


@dataclass(frozen=True, slots=True)
class SqlResultsCacheSettings(Section):
    """The cache of SQL results; a stale time above 0 serves expired results for that long."""

    enabled: bool = True
    max_size_bytes: Size = key("max_size", default=128 * MIB)
    item_ttl_s: Duration = key("item_ttl", default=1.0)
    eviction_policy: EvictionPolicy = "lru"
    hashing_algorithm: HashingAlgorithm = "xxh3"
    cache_key_type: Literal["plan", "sql"] = "plan"
    encoding: Literal["none", "zstd"] = "none"
    stale_while_revalidate_ttl_s: Duration = key("stale_while_revalidate_ttl", default=0.0)


@dataclass(frozen=True, slots=True)
class OldResultsCache(Section):
    """The cache of SQL results under its old name, `results_cache`."""

    enabled: bool = True
    max_size_bytes: Size = key("cache_max_size", default=128 * MIB)
    item_ttl_s: Duration = key("item_ttl", default=1.0)
    eviction_policy: EvictionPolicy = "lru"
    hashing_algorithm: HashingAlgorithm = "xxh3"
    cache_key_type: Literal["plan", "sql"] = "plan"

    @classmethod
    def from_keys(cls, keys: dict[str, Any], folder: Path) -> SqlResultsCacheSettings:
        """Return the settings under the new name."""
        return SqlResultsCacheSettings(**keys)


@dataclass(frozen=True, slots=True)
class SearchResultsCacheSettings(Section):
    """The cache of the results of searches."""

    KEYS: ClassVar[Mapping[str, object]] = {
        "eviction_policy": EvictionPolicy,
        "hashing_algorithm": HashingAlgorithm,
    }

    enabled: bool = True
    max_size_bytes: Size = key("max_size", default=128 * MIB)
    item_ttl_s: Duration = key("item_ttl", default=1.0)


@dataclass(frozen=True, slots=True)
class EmbeddingsCacheSettings(Section):
    """The cache of vectors in the process of a scheduler; None keeps them until room is needed.

    Only a manifest with this section has answers of `POST /v1/embeddings` kept, too.
    """

    enabled: bool = True
    max_size_bytes: Size = key("max_size", default=64 * MIB)
    item_ttl_s: Duration | None = key("item_ttl", default=None)
    eviction_policy: EvictionPolicy = "lru"
    hashing_algorithm: HashingAlgorithm = "xxh3"
    max_stored_size_bytes: Size = key("max_stored_size", default=4096 * MIB)
    """Of the vectors of datasets in the result store; 0 stores none."""


@dataclass(frozen=True, slots=True)
class CachingSettings(Section):
    """The caches of this build."""

    sql_results: SqlResultsCacheSettings = SqlResultsCacheSettings()
    search_results: SearchResultsCacheSettings = SearchResultsCacheSettings()
    embeddings: EmbeddingsCacheSettings | None = None
