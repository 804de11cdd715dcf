"""Keeps the schemas of statements that were planned only to learn the types of expressions."""

from collections import OrderedDict
from threading import Lock

import pyarrow as pa

_KEPT_SCHEMAS = 1024


class KnownSchemas:
    """The schemas of the statements that were planned for their types, of one catalog.

    What cannot be planned is not kept: it may be another principal's right to read it.
    """

    def __init__(self) -> None:
        self._schemas: OrderedDict[str, pa.Schema] = OrderedDict()
        self._lock = Lock()

    def recall(self, key: str) -> pa.Schema | None:
        """Return the schema of a statement, if it was kept."""
        with self._lock:
            schema = self._schemas.get(key)
            if schema is not None:
                self._schemas.move_to_end(key)
            return schema

    def remember(self, key: str, schema: pa.Schema) -> None:
        """Keep a schema."""
        with self._lock:
            self._schemas[key] = schema
            if len(self._schemas) > _KEPT_SCHEMAS:
                self._schemas.popitem(last=False)
