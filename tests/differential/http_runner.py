"""A runtime behind HTTP as a runner, with Arrow stream answers and errors by status."""

import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pyarrow as pa

from caraway_core.errors import (
    ExecutionError,
    InvalidQueryError,
    OutOfMemoryQueryError,
    QueryError,
    QueryForbiddenError,
    QueryTimeoutError,
    TableNotFoundError,
)
from caraway_core.ids import TableName
from caraway_serving.formats import columns
from tests.differential.datasets import Dataset
from tests.differential.runners import Distributed
from tests.kit.runtime import running

_ARROW = "application/vnd.apache.arrow.stream"
_ERRORS: dict[int, type[QueryError]] = {
    400: InvalidQueryError,
    403: QueryForbiddenError,
    500: ExecutionError,
    504: QueryTimeoutError,
}


class OverHttp:
    """A `Distributed` over HTTP; the base URL of the client is that of the runtime."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def execute(self, sql: str) -> pa.Table:
        try:
            response = await self._client.post(
                "/v1/sql",
                content=sql.encode(),
                headers={"content-type": "text/plain", "accept": _ARROW},
            )
        except httpx.RemoteProtocolError as exc:
            raise ExecutionError(f"the answer broke off: {exc}") from exc
        if response.status_code != httpx.codes.OK:
            raise _error(response)
        try:
            return pa.ipc.open_stream(response.content).read_all()
        except pa.ArrowInvalid as exc:
            raise ExecutionError(f"the answer is cut: {exc}") from exc

    async def explain(self, sql: str) -> str:
        rows = await self.execute(f"EXPLAIN {sql}")
        return str(rows.to_pylist()[-1]["plan"])


def as_sent(answer: pa.Table) -> pa.Table:
    """Return the answer as it arrives over HTTP: with plain strings instead of string views."""
    return answer.cast(columns.without_views(answer.schema))


@asynccontextmanager
async def standalone(dataset: Dataset) -> AsyncIterator[Distributed]:
    """The standalone runtime over the dataset's manifest, without a socket."""
    with tempfile.TemporaryDirectory() as folder:
        text = dataset.manifest().read_text()
        body = text[text.index("datasets:") :]
        async with running(Path(folder), body) as runtime:
            yield OverHttp(runtime.api)


def _error(response: httpx.Response) -> QueryError:
    if response.status_code == 500 and "more memory than it may use" in response.text:
        return OutOfMemoryQueryError(response.text)
    missing = re.match(r"table '(.+?)' not found", response.text)
    if response.status_code == 400 and missing:
        return TableNotFoundError(response.text, TableName(missing[1]))
    return _ERRORS[response.status_code](response.text)
