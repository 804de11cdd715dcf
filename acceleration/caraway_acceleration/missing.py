"""Explains why a dataset is not accelerated: it is unknown, not accelerated, or not loaded yet."""

from caraway_core.errors import CarawayError, InvalidRequestError, NotFoundError, UnavailableError
from caraway_core.ids import TableName
from caraway_scheduler.catalog.catalog import Catalog


class NotAcceleratedError(InvalidRequestError):
    """The dataset exists, but is not accelerated."""


class NoDatasetError(NotFoundError):
    """No dataset has this name."""


def explained(catalog: Catalog, name: TableName) -> CarawayError:
    """Return the error to report; it is retryable if the dataset may be accelerated later."""
    state = catalog.datasets.get(name)
    if state is None and not catalog.version:
        return UnavailableError(
            "the runtime is starting and has not loaded its datasets; try again"
        )
    if state is None:
        return NoDatasetError(f"no dataset '{name}'; GET /v1/datasets lists them")
    if state.is_accelerated:
        reason = state.error.message if state.error else f"dataset '{name}' is not loaded yet"
        return UnavailableError(f"{reason}; try again")
    return NotAcceleratedError(
        f"dataset '{name}' is not accelerated; enable its 'acceleration' in the manifest"
    )
