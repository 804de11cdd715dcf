"""The client for asyncio, with the names of `Client`.

async with AsyncClient() as client:
    table = await client.sql("SELECT * FROM orders")

pyarrow has no asyncio interface for Flight, so each call runs in one of a few threads. A cancelled
task closes what it was reading, which cancels the statement on the server.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from caraway.async_routes import AsyncRoutes
from caraway.client import Client
from caraway.requests.arguments import Parameters
from caraway.requests.closing import AsyncClosing
from caraway.requests.parsing import Row
from caraway.rows.readers import RecordReader
from caraway.statements.async_handles import AsyncQueryHandle, AsyncReader

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway.rows.results import SqlResult

__all__ = ["AsyncClient", "AsyncReader"]


class AsyncClient(AsyncRoutes, AsyncClosing):
    """Sends requests to one runtime. The arguments and the variables are those of `Client`.

    At most 16 calls run at a time; further ones wait.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        http_url: str | None = None,
        flight_url: str | None = None,
        tls_root_cert: str | Path | None = None,
        tls_client_cert: tuple[str | Path, str | Path] | None = None,
        user_agent: str = "",
        max_retries: int = 3,
    ) -> None:
        client = Client(
            api_key,
            http_url=http_url,
            flight_url=flight_url,
            tls_root_cert=tls_root_cert,
            tls_client_cert=tls_client_cert,
            user_agent=user_agent,
            max_retries=max_retries,
        )
        super().__init__(client)

    async def close(self) -> None:
        """Close all connections. The client cannot be used afterwards."""
        self._client.close()
        self._calls.close()

    def set_max_retries(self, retries: int) -> None:
        """Set how often a request is tried again; 0 turns that off."""
        self._client.set_max_retries(retries)

    async def sql(
        self,
        statement: str,
        parameters: Parameters | None = None,
        *,
        on_data: "Callable[[pa.RecordBatch], object] | None" = None,
        timeout_s: float | None = None,
    ) -> "SqlResult":
        """Run a statement and return all its rows as an Arrow table."""
        reader = await self.reader(statement, parameters, timeout_s=timeout_s)
        return await reader.read_all(on_data)

    async def reader(
        self,
        statement: str,
        parameters: Parameters | None = None,
        *,
        timeout_s: float | None = None,
    ) -> AsyncReader:
        """Run a statement and read its rows batch by batch, in constant memory."""
        opened = await self._calls.run_call(
            lambda: self._client.reader(statement, parameters, timeout_s=timeout_s),
            unwanted=RecordReader.close,
        )
        return AsyncReader(opened, self._calls)

    async def sql_json(
        self,
        statement: str,
        parameters: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Row:
        """Run a statement and return `{row_count, schema, data, execution_time_ms}`."""
        return await self._calls.run_call(
            lambda: self._client.sql_json(statement, parameters, headers)
        )

    async def query(
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        timeout_seconds: float | None = None,
        maximum_size: int | None = None,
        idempotency_key: str = "",
    ) -> AsyncQueryHandle:
        """Submit an asynchronous query. It keeps running if the client disconnects."""
        handle = await self._calls.run_call(
            lambda: self._client.query(
                sql,
                parameters,
                timeout_seconds=timeout_seconds,
                maximum_size=maximum_size,
                idempotency_key=idempotency_key,
            )
        )
        return AsyncQueryHandle(handle, self._calls)

    def open_query(self, query_id: str) -> AsyncQueryHandle:
        """Return a handle for a query submitted earlier, without contacting the server."""
        return AsyncQueryHandle(self._client.open_query(query_id), self._calls)

    async def list_queries(self, status: str = "", limit: int = 100) -> list[Row]:
        """List the caller's asynchronous queries, newest first."""
        return await self._calls.run_call(lambda: self._client.list_queries(status, limit))

    async def nsql(
        self,
        query: str,
        *,
        datasets: Iterable[str] | None = None,
        model: str | None = None,
        sample_data_enabled: bool | None = None,
    ) -> Row:
        """Have a model write a statement for a question, and run it."""
        return await self._calls.run_call(
            lambda: self._client.nsql(
                query, datasets=datasets, model=model, sample_data_enabled=sample_data_enabled
            )
        )

    async def nsql_generate_sql(
        self,
        query: str,
        *,
        datasets: Iterable[str] | None = None,
        model: str | None = None,
        sample_data_enabled: bool | None = None,
    ) -> str:
        """Have a model write a statement for a question, and return it without running it."""
        return await self._calls.run_call(
            lambda: self._client.nsql_generate_sql(
                query, datasets=datasets, model=model, sample_data_enabled=sample_data_enabled
            )
        )

    async def search(
        self,
        text: str,
        *,
        datasets: Iterable[str] | None = None,
        limit: int | None = None,
        where: str | None = None,
        additional_columns: Iterable[str] | None = None,
        keywords: Iterable[str] | None = None,
    ) -> Row:
        """Search datasets by meaning and by words."""
        return await self._calls.run_call(
            lambda: self._client.search(
                text,
                datasets=datasets,
                limit=limit,
                where=where,
                additional_columns=additional_columns,
                keywords=keywords,
            )
        )
