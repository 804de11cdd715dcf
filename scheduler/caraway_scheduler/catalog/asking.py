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
from caraway_core.protocols.change_sources import ChangeSource
from caraway_core.protocols.sources import Source, SourceRequest
from caraway_core.tables import TableSpec
from caraway_scheduler.catalog import opening

_POLLING_THREADS = 2
_Result = TypeVar("_Result")


class SourceCalls:
    """Calls the sources of datasets; `secrets` belongs to the current manifest."""

    def __init__(self, cache_dir: Path, parallelism: int) -> None:
        self.secrets: SecretResolver | None = None
        self._cache_dir = cache_dir
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
        pool = self._polling if polling else self._loading
        return await self._call(pool, source.fingerprint, request)

    async def resolve(self, dataset: Dataset) -> TableSpec:
        """Return the table spec of a dataset.

        Raises:
            DatasetError: the source cannot be read.
        """
        source, request = self._source(dataset)
        return await self._call(self._loading, source.resolve, request)

    def params(self, dataset: Dataset) -> Mapping[str, str]:
        """Return the params of a dataset, with secrets filled in.

        Raises:
            CarawayError: a secret is missing.
        """
        assert self.secrets is not None
        return self.secrets.expand_all(dataset.params)

    def change_source(
        self, dataset: Dataset, learned: Callable[[], pa.Schema | None]
    ) -> ChangeSource | None:
        """Return the source of a dataset's changes, or None if its connector has none.

        Raises:
            DatasetError: the dataset's path or params are wrong.
        """
        assert self.secrets is not None
        return opening.change_source(dataset, self.secrets, learned)

    def close(self) -> None:
        """Shut down the threads without waiting for running calls."""
        self._loading.shutdown(wait=False, cancel_futures=True)
        self._polling.shutdown(wait=False, cancel_futures=True)

    def _source(self, dataset: Dataset) -> tuple[Source, SourceRequest]:
        assert self.secrets is not None
        return opening.source(dataset, self.secrets, self._cache_dir)

    @staticmethod
    async def _call(
        pool: ThreadPoolExecutor,
        function: Callable[[SourceRequest], _Result],
        request: SourceRequest,
    ) -> _Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(pool, partial(_asked, function), request)


def _asked(function: Callable[[SourceRequest], _Result], request: SourceRequest) -> _Result:
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
        raise unexpected(request.name, "its source", exc) from exc


def _hide_folders(exc: DatasetError, request: SourceRequest) -> None:
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
