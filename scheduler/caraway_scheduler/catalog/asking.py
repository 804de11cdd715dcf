"""Calls the sources of datasets in threads, because a source may block or raise anything."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, SecretResolver
from caraway_core.protocols.catalog_sources import CatalogRequest
from caraway_core.protocols.change_sources import ChangeSource
from caraway_core.protocols.sources import Source, SourceRequest
from caraway_core.tables import TableSpec
from caraway_scheduler.catalog import opening

_POLLING_THREADS = 2
_Request = TypeVar("_Request", SourceRequest, CatalogRequest)
_Result = TypeVar("_Result")


class SourceCalls:
    """Calls the sources of datasets; `secrets` belongs to the current manifest."""

    def __init__(self, cache_dir: Path, parallelism: int) -> None:
        self.secrets: SecretResolver | None = None
        self.cache_dir = cache_dir
        self._loading = ThreadPoolExecutor(parallelism, thread_name_prefix="loading")
        # A separate pool, so that sources that load slowly do not delay polling.
        self._polling = ThreadPoolExecutor(_POLLING_THREADS, thread_name_prefix="polling")

    async def fingerprint(self, dataset: Dataset, *, polling: bool = False) -> str | None:
        """Return a value that changes whenever the dataset's data changes, or None if it is
        unknown.

        Raises:
            DatasetError: the source cannot be read.
        """
        source, request = self._source(dataset)
        return await self.call(source.fingerprint, request, polling=polling)

    async def resolve(self, dataset: Dataset) -> TableSpec:
        """Return the table spec of a dataset.

        Raises:
            DatasetError: the source cannot be read.
        """
        source, request = self._source(dataset)
        return await self.call(source.resolve, request)

    def params(self, dataset: Dataset) -> Mapping[str, str]:
        """Return the params of a dataset, with secrets filled in.

        Raises:
            CarawayError: a secret is missing.
        """
        return self.resolver.expand_all(dataset.params)

    def change_source(
        self, dataset: Dataset, learned: Callable[[], pa.Schema | None]
    ) -> ChangeSource | None:
        """Return the source of a dataset's changes, or None if its connector has none.

        Raises:
            DatasetError: the dataset's path or params are wrong.
        """
        return opening.change_source(dataset, self.resolver, learned)

    def close(self) -> None:
        """Shut down the threads without waiting for running calls."""
        self._loading.shutdown(wait=False, cancel_futures=True)
        self._polling.shutdown(wait=False, cancel_futures=True)

    def _source(self, dataset: Dataset) -> tuple[Source, SourceRequest]:
        return opening.source(dataset, self.resolver, self.cache_dir)

    @property
    def resolver(self) -> SecretResolver:
        """The secrets of the current manifest."""
        assert self.secrets is not None
        return self.secrets

    async def call(
        self, function: Callable[[_Request], _Result], request: _Request, *, polling: bool = False
    ) -> _Result:
        """Call a source in a thread.

        Raises:
            DatasetError: the call failed.
        """
        pool = self._polling if polling else self._loading
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(pool, partial(_asked, function), request)


def _asked(function: Callable[[_Request], _Result], request: _Request) -> _Result:
    """Call a source; raise only DatasetError.

    asyncio cannot pass on every exception. After StopIteration the caller never wakes,
    CancelledError looks like a cancelled caller, and SystemExit ends the loop.
    """
    try:
        return function(request)
    except DatasetError as exc:
        _hide_folders(exc, request)
        raise
    except BaseException as exc:
        raise unexpected(TableName(request.name), "its source", exc) from exc


def _hide_folders(exc: DatasetError, request: SourceRequest | CatalogRequest) -> None:
    """Remove server folders from the message, so that files are named as in the manifest."""
    for folder in (request.base_dir, request.base_dir.resolve(), request.cache_dir):
        exc.message = exc.message.replace(f"{folder}/", "")
    exc.args = (exc.message,)


class UnexpectedError(DatasetError):
    """An unexpected failure; its cause and traceback belong in the log."""


def unexpected(name: TableName, what: str, exc: BaseException) -> UnexpectedError:
    """Return the error for an unexpected failure, without the text of the original exception."""
    error = UnexpectedError(
        "invalid",
        f"dataset '{name}': {what} failed unexpectedly; the scheduler's log has the cause",
    )
    error.__cause__ = exc
    return error
