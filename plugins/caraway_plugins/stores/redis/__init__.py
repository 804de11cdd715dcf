"""The state store of clusters, in Redis or Valkey; the only package that imports redis."""

from caraway_plugins.stores.redis.store import RedisStateStore

__all__ = ["RedisStateStore"]
