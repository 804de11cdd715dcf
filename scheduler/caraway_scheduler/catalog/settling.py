"""Updates the states of datasets: from loads that failed, and from the installed catalog."""

import logging
from collections.abc import Mapping
from typing import Protocol

from caraway_core.concurrency import tasks
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_scheduler.catalog.asking import UnexpectedError, unexpected
from caraway_scheduler.catalog.installing import Installer
from caraway_scheduler.catalog.judging import Judge
from caraway_scheduler.catalog.states import DatasetState, source_of

logger = logging.getLogger(__name__)


class Accelerator(Protocol):
    """Keeps accelerated copies of datasets."""

    def accelerate_dataset(self, state: DatasetState, acceleration: Acceleration) -> None:
        """Start the acceleration of a dataset."""

    def end(self, name: TableName) -> None:
        """Stop the acceleration of a dataset."""

    def source_loaded(self, name: TableName) -> None:
        """Note that the source of a dataset was loaded."""


class Judges(Protocol):
    """Returns what knows why a table cannot be read; the catalog implements it."""

    def judge(self) -> Judge:
        """Return it for the tables as they are now."""
        ...


class Settling:
    """Updates the state of each dataset after a catalog was installed."""

    def __init__(
        self,
        datasets: Mapping[TableName, DatasetState],
        installer: Installer,
        accelerator: Accelerator,
        judges: Judges,
    ) -> None:
        self._datasets = datasets
        self._installer = installer
        self._accelerator = accelerator
        self._judges = judges

    def update(self) -> None:
        """Update the state of every dataset from the installed catalog."""
        installed, failed = self._installer.installed, self._installer.planned.failed
        for name, state in self._datasets.items():
            state.source_error = None
            if name in failed or source_of(name) in failed:
                self._failed(state, failed.get(name) or failed[source_of(name)])
            elif state.is_accelerated:
                if state.is_loaded and state.spec is installed.get(source_of(name)):
                    state.attempts = 0
                    self._source_loaded(state)
                # Refreshes report every other status.
            elif state.is_loaded and state.spec is installed.get(name):
                state.status, state.error, state.attempts = "ready", None, 0

    def _failed(self, state: DatasetState, failure: str) -> None:
        if state.spec is not None and state.spec.query is not None:
            error, waits_for = self._judges.judge().source(state.name)
            if waits_for:
                return  # It is loaded once the tables that it reads exist.
        else:
            error = None
        error = error or DatasetError("invalid", f"dataset '{state.name}': {failure}")
        state.source_error = error
        fail(state, error)
        if state.is_accelerated and state.is_loaded:
            self._source_loaded(state)  # A refresh reports the error.

    def _source_loaded(self, state: DatasetState) -> None:
        if not state.is_kept:
            return
        try:
            self._accelerator.source_loaded(state.name)
        except BaseException as exc:  # noqa: BLE001 -- only this dataset fails
            # Only this dataset failed; continue with the others.
            fail_unforeseen(state, "its acceleration", exc)
            state.source_error = state.error


def fail(state: DatasetState, exc: DatasetError) -> None:
    """Note that a dataset could not be loaded."""
    state.attempts += 1
    if state.attempts == 1 or (state.error and state.error.message != exc.message):
        logger.warning(
            "dataset failed to load",
            exc_info=exc.__cause__ if isinstance(exc, UnexpectedError) else None,
            extra={"dataset": state.name, "code": exc.code, "reason": exc.message},
        )
    if state.version is not None:
        return  # Its rows are served; a refresh reports the error of the source.
    state.status = "error"
    state.error = exc


def fail_unforeseen(state: DatasetState, what: str, exc: BaseException) -> None:
    """Put a dataset into the error state, unless the exception ends this task."""
    if tasks.ends(exc):
        raise exc
    fail(state, unexpected(state.name, what, exc))
