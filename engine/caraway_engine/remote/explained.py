"""EXPLAIN of statements that databases answer: the engine's rows, and the statements."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from caraway_core.work import SourceQuery
from caraway_engine.execution.streams import OwnStream
from caraway_engine.remote.streams import OwnBatch

PLAN_TYPE = "answered_by_database"


class AnsweredExplain(OwnStream):
    """The rows of an EXPLAIN, and after them one for each statement that a database answers."""

    def __init__(self, rows: Any, queries: Sequence[SourceQuery], schema: pa.Schema) -> None:
        self._rows = rows
        self._added: pa.RecordBatch | None = pa.RecordBatch.from_arrays(
            [
                pa.array([PLAN_TYPE] * len(queries)).cast(schema.types[0]),
                pa.array([each.sql for each in queries]).cast(schema.types[1]),
            ],
            schema=schema,
        )

    async def __anext__(self) -> Any:
        try:
            return await self._rows.__anext__()
        except StopAsyncIteration:
            added, self._added = self._added, None
            if added is None:
                raise
            return OwnBatch(added)

    def close(self) -> None:
        if isinstance(self._rows, OwnStream):
            self._rows.close()
