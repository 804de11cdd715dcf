"""Caches the schemas of statements that are planned only to learn types."""

from collections import OrderedDict
from threading import Lock

import pyarrow as pa

_KEPT_SCHEMAS = 1024


class KnownSchemas:
    """The schemas of statements that were planned for their types, for one catalog.

    Failures are not cached, because another principal may be allowed to read the tables.
    """

    def __init__(self) -> None:
        self._schemas: OrderedDict[str, pa.Schema] = OrderedDict()
        self._lock = Lock()

    def recall(self, key: str) -> pa.Schema | None:
        """Return the cached schema of a statement, or None."""
        with self._lock:
            schema = self._schemas.get(key)
            if schema is not None:
                self._schemas.move_to_end(key)
            return schema

    def remember(self, key: str, schema: pa.Schema) -> None:
        """Cache a schema, and evict the least recently used one if the cache is full."""
        with self._lock:
            self._schemas[key] = schema
            if len(self._schemas) > _KEPT_SCHEMAS:
                self._schemas.popitem(last=False)
