"""Creates the sources of datasets, and the requests for them."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from caraway_core.errors import CarawayError, DatasetError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.manifest import Dataset, SecretResolver, arrow_type
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_core.manifest.values.values import VIEW
from caraway_core.protocols.change_sources import ChangeRequest, ChangeSource
from caraway_core.protocols.sources import Source, SourceCapabilities, SourceRequest
from caraway_core.tables import Twice, ViewTable


def source(
    dataset: Dataset, secrets: SecretResolver, cache_dir: Path
) -> tuple[Source, SourceRequest]:
    """Return the source of a dataset, and the request for it.

    Raises:
        DatasetError: the connector does not exist, or a secret is missing.
    """
    is_view = dataset.connector == VIEW
    try:
        found: Source = _ViewSource() if is_view else registry.SOURCES.load(dataset.connector)()
        params = secrets.expand_all(dataset.params)
        path = dataset.path if is_view else secrets.expand(dataset.path)
    except CarawayError as exc:
        raise _unsupported(dataset, exc) from exc
    return found, SourceRequest(
        name=TableName(dataset.name),
        connector=dataset.connector,
        path=path,
        params=params,
        declared=_declared(dataset),
        access=dataset.access,
        base_dir=dataset.base_dir,
        cache_dir=cache_dir,
        is_followed=_is_followed(dataset),
    )


def _is_followed(dataset: Dataset) -> bool:
    if dataset.acceleration is None:
        return False
    return dataset.acceleration.refresh.mode in ("changes", "disabled")


def change_source(
    dataset: Dataset, secrets: SecretResolver, learned: Callable[[], pa.Schema | None]
) -> ChangeSource | None:
    """Return the source of an accelerated dataset's changes, or None if its connector has none.

    `learned` returns the columns that the dataset has from earlier events, or None.

    Raises:
        DatasetError: the dataset's path or params are wrong.
    """
    if dataset.connector not in registry.CHANGE_SOURCES or not _is_followed(dataset):
        return None
    assert dataset.acceleration is not None
    try:
        source_class = registry.CHANGE_SOURCES.load(dataset.connector)
        request = ChangeRequest(
            TableName(dataset.name),
            dataset.connector,
            secrets.expand(dataset.path),
            secrets.expand_all(dataset.params),
            _declared(dataset),
            dataset.acceleration.primary_key,
            _twice(dataset.acceleration),
            learned,
        )
    except DatasetError:
        raise
    except CarawayError as exc:
        raise _unsupported(dataset, exc) from exc
    found: ChangeSource = source_class(request)
    return found


def _unsupported(dataset: Dataset, exc: CarawayError) -> DatasetError:
    return DatasetError("unsupported", f"dataset '{dataset.name}': {exc.message}")


def _twice(acceleration: Acceleration) -> Twice:
    """Return which row wins when a row is created twice with one key."""
    is_kept = any(each.action == "drop" for each in acceleration.on_conflict)
    return "first" if is_kept else "last"


def _declared(dataset: Dataset) -> tuple[pa.Field, ...]:
    return tuple(
        pa.field(column.name, arrow_type(column.type)) for column in dataset.columns if column.type
    )


class _ViewSource:
    """The query of an accelerated view as its `Source`.

    The query is checked when the catalog is installed.
    """

    capabilities = SourceCapabilities()

    def resolve(self, request: SourceRequest) -> ViewTable:
        """Return the view's query as a table."""
        return ViewTable(request.path)

    def fingerprint(self, request: SourceRequest) -> str | None:
        """Return None: the data of a query has no fingerprint."""
        return None
