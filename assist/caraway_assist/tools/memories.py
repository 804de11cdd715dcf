"""The dataset that models keep memories in: `from: memory:store`, with `access: read_write`."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa

from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.sql_names import quoted_table
from caraway_assist.tools.data import principal_of, span_of
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset
from caraway_core.manifest.texts.names import MEMORY_PATH
from caraway_core.protocols.memories import MEMORY_SCHEMA
from caraway_core.statements import GivenRows
from caraway_scheduler.queries.requests import QueryRequest
from caraway_scheduler.queries.service import QueryService


def find(datasets: Sequence[Dataset]) -> TableName | None:
    """Return the dataset for memories; of several, the first one."""
    for each in datasets:
        is_store = each.connector == "memory" and each.path == MEMORY_PATH
        if is_store and each.access == "read_write":
            return TableName(each.name)
    return None


class MemoryDataset:
    """Writes rows with the rights of the caller."""

    def __init__(self, name: TableName, queries: QueryService) -> None:
        self.name = name
        self._queries = queries

    async def add(self, values: Sequence[str], caller: ToolCaller) -> Sequence[str]:
        """Add rows, and return their ids.

        Raises:
            QueryError: they could not be written.
        """
        ids = [str(uuid.uuid4()) for _ in values]
        rows = pa.table(
            [ids, list(values), [str(caller.principal)] * len(ids), [datetime.now(UTC)] * len(ids)],
            schema=MEMORY_SCHEMA,
        )
        given = GivenRows.from_table(rows, self.name)
        names = ", ".join(MEMORY_SCHEMA.names)
        request = QueryRequest(
            sql=f"INSERT INTO {quoted_table(self.name)} ({names}) "
            f"SELECT {names} FROM {quoted_table(given.name)}",
            principal=principal_of(caller),
            span=span_of(caller).child(),
            protocol="internal",
            given=given,
        )
        answer = await self._queries.start(request)
        try:
            async for _ in answer.rows:
                pass
        finally:
            answer.rows.close()
        return ids
