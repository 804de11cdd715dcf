"""EXPLAIN of statements that databases answer: the engine's rows, and the statements."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from caraway_core.work import SourceQuery
from caraway_engine.execution.streams import OwnStream
from caraway_engine.remote.streams import OwnBatch

PLAN_TYPE = "answered_by_database"


class AnsweredExplain(OwnStream):
    """The rows of an EXPLAIN, and after them one for each statement that a database answers.

    `queries` is called after the last row, because scans are worded when their plan begins.
    """

    def __init__(
        self, rows: Any, queries: Callable[[], Sequence[SourceQuery]], schema: pa.Schema
    ) -> None:
        self._rows = rows
        self._queries: Callable[[], Sequence[SourceQuery]] | None = queries
        self._schema = schema

    async def __anext__(self) -> Any:
        try:
            return await self._rows.__anext__()
        except StopAsyncIteration:
            queries, self._queries = self._queries, None
            found = queries() if queries is not None else ()
            if not found:
                raise
            kinds, statements = self._schema.types[:2]
            columns = [
                pa.array([PLAN_TYPE] * len(found)).cast(kinds),
                pa.array([each.sql for each in found]).cast(statements),
            ]
            return OwnBatch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        if isinstance(self._rows, OwnStream):
            self._rows.close()
