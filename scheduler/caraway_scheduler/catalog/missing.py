"""Explains why a statement cannot find a table: it is unknown, or not loaded yet."""

from caraway_core.errors import (
    DatasetError,
    DatasetLoadingError,
    QueryError,
    TableNotFoundError,
)
from caraway_scheduler.catalog.catalog import Catalog

_RETRY_AFTER_S = 2


def explained(catalog: Catalog, exc: TableNotFoundError) -> QueryError:
    """Return the error to report; it is retryable if the table may appear later."""
    dataset, view = catalog.datasets.get(exc.table), catalog.views.get(exc.table)
    known = dataset or view
    if known is None:
        return exc
    title = f"{'dataset' if dataset is not None else 'view'} '{exc.table}'"
    if known.status == "disabled":
        return TableNotFoundError(f"{title} is disabled; enable it in the manifest", exc.table)
    if dataset is not None and dataset.error is not None:
        return _away(title, dataset.error)
    if view is not None and view.error is not None:
        # A table that a view reads may come; the view's own statement stays wrong.
        if view.error.type == "unavailable":
            return _away(title, view.error)
        return TableNotFoundError(_broken(title, view.error), exc.table)
    waits_for = f" (it waits for {view.waits_for})" if view is not None and view.waits_for else ""
    return DatasetLoadingError(f"{title} is still loading{waits_for}; try again", _RETRY_AFTER_S)


def _away(title: str, cause: DatasetError) -> QueryError:
    return DatasetLoadingError(f"{_broken(title, cause)}; loading is retried", _RETRY_AFTER_S)


def _broken(title: str, cause: DatasetError) -> str:
    return f"{title} is in the error state and cannot be read: {cause.message}"
