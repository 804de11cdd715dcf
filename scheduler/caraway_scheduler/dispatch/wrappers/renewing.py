"""Shows the rows that a statement wrote to a table of which datasets read one version."""

import asyncio
import logging
from typing import Protocol

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.statements import Statement
from caraway_core.tables import TableSpec
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch

logger = logging.getLogger(__name__)
_LIMIT_S = 30.0


class ReadTables(Protocol):
    """The tables of datasets and of source catalogs."""

    def table_at_source(self, name: TableName) -> TableSpec | None: ...

    async def renew(self, name: TableName) -> None: ...


class RenewingDispatch(WrappedDispatch):
    """A dispatch whose statements end once their rows can be read here.

    Tables of databases are read as they are. Of a table of files, one version is read until it is
    looked at again.
    """

    def __init__(self, inner: Dispatch, catalog: ReadTables) -> None:
        super().__init__(inner)
        self._catalog = catalog

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan a statement and start it.

        Raises:
            QueryError: it cannot be planned or started.
        """
        stream = await self._inner.execute(query_id, statement)
        if stream.written is None or not self._is_read_by_version(stream.written):
            return stream
        return _Renewed(stream, stream.written, self._catalog)

    def _is_read_by_version(self, name: TableName) -> bool:
        spec = self._catalog.table_at_source(name)
        return spec is not None and spec.written not in (None, spec)


class _Renewed(WrappedStream):
    """The answer to a write, which comes once its rows can be read."""

    is_at_end = False

    def __init__(self, stream: BatchStream, dataset: TableName, catalog: ReadTables) -> None:
        super().__init__(stream)
        self._dataset = dataset
        self._catalog = catalog

    async def __anext__(self) -> pa.RecordBatch:
        batch = await super().__anext__()
        try:
            async with asyncio.timeout(_LIMIT_S):
                await self._catalog.renew(self._dataset)
        except (DatasetError, TimeoutError) as exc:
            # The rows are committed; the next look at the table shows them.
            logger.warning(
                "a dataset was not read again after a write; its rows are visible later",
                extra={"dataset": self._dataset, "cause": str(exc)},
            )
        return batch
