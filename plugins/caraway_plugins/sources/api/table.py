"""A table whose rows are the pages of an API."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import TableSpec, scanners
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.api import filtering, values
from caraway_plugins.sources.api.calls import ApiCall, ApiPage
from caraway_plugins.sources.api.sending import ApiClient, ApiLimits

_BATCH_ROWS = 8_192
USUAL_PAGES = 1_000
MOST_PAGES = 100_000


class ApiPages(Protocol):
    """Describes the pages of an API and the rows in them: a frozen value."""

    @property
    def title(self) -> str:
        """The API in messages."""
        ...

    @property
    def most_pages(self) -> int:
        """The number of pages after which reading ends with an error."""
        ...

    def first(self, request: RowRequest) -> ApiCall:
        """Return the request for the first page of rows."""
        ...

    def rows(self, call: ApiCall, page: ApiPage) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a page, which answers a request.

        Raises:
            DatasetError: it has none where they should be.
        """
        ...

    def next(self, call: ApiCall, page: ApiPage, rows: int) -> ApiCall | None:
        """Return the request for the page after one that had some rows; None: it is the last.

        Raises:
            DatasetError: the page says it in a form that cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class ApiTable(TableSpec):
    """The rows of an API. `texts` are columns that are declared as text, and take any value."""

    schema: pa.Schema
    pages: ApiPages
    limits: ApiLimits
    texts: frozenset[str] = frozenset()

    @property
    def why_unchangeable(self) -> str:
        return "its rows are behind an API; change them there"


def each_page(
    client: ApiClient, pages: ApiPages, request: RowRequest
) -> Iterator[Sequence[Mapping[str, object]]]:
    """Yield the rows of each page.

    Raises:
        DatasetError: a page cannot be read, or there are too many, or one repeats.
    """
    call: ApiCall | None = pages.first(request)
    for _ in range(pages.most_pages):
        assert call is not None
        page = client.ask(call)
        rows = pages.rows(call, page)
        yield rows
        before, call = call, pages.next(call, page, len(rows))
        if call is None:
            return
        if call == before:
            raise DatasetError(
                "invalid", f"'{pages.title}' says that a page comes after itself; check its params"
            )
    raise DatasetError(
        "unsupported",
        f"'{pages.title}' has more than {pages.most_pages} pages; raise pagination_max_pages, or "
        "ask for larger pages",
    )


class _Rows:
    """Asks for the first page when the first row is needed, in the thread that needs it."""

    def __init__(self, table: ApiTable, request: RowRequest) -> None:
        self._table, self._request = table, request
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        client = ApiClient(self._table.limits, self._stopped)
        try:
            yield from self._batches(client)
        except DatasetError as exc:
            raise QueryError(exc.message) from exc
        finally:
            client.close()

    def close(self) -> None:
        self._stopped.set()

    def _batches(self, client: ApiClient) -> Iterator[pa.RecordBatch]:
        table, request = self._table, self._request
        names = dict.fromkeys([*request.columns, *(each.column for each in request.filters)])
        schema = pa.schema([table.schema.field(name) for name in names])
        left = request.limit
        for rows in each_page(client, table.pages, request):
            for start in range(0, len(rows), _BATCH_ROWS):
                part = rows[start : start + _BATCH_ROWS]
                batch = values.batch(part, schema, table.texts, table.pages.title)
                batch = filtering.passing(batch, request.filters)
                if self._stopped.is_set():
                    return
                yield batch.select(list(request.columns))
                if left is not None and (left := left - batch.num_rows) <= 0:
                    return


class _Scanner:
    def scan(self, table: ApiTable, request: RowRequest) -> _Rows:
        return _Rows(table, request)


# To unpickle a table imports this module, so every process that gets one has the scanner.
scanners.register(ApiTable, _Scanner())
