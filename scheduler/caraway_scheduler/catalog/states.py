"""What is known of each dataset and view at one moment."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, View
from caraway_core.manifest.names import SOURCE_SCHEMA
from caraway_core.tables import StoredTable, TableSpec

ReadyState = Literal["on_load", "on_registration"]
Status = Literal["initializing", "ready", "disabled", "error", "refreshing", "shuttingdown"]


@dataclass(slots=True)
class DatasetState:
    """A dataset of the manifest and how far it has come."""

    dataset: Dataset
    ready_state: ReadyState = "on_load"
    status: Status = "initializing"
    error: DatasetError | None = None
    spec: TableSpec | None = None
    version: StoredTable | None = None
    """What queries read of an accelerated dataset; `spec` is its source."""
    source_error: DatasetError | None = None
    """Why the source of an accelerated dataset cannot be read as a table, though it was found."""
    is_loaded: bool = False
    fingerprint: str | None = None
    resolved: str | None = None
    """The fingerprint of what `spec` was read from; the last one that was seen may be another."""
    attempts: int = 0
    is_kept: bool = False
    """Whether the accelerator has taken an accelerated dataset."""
    stale: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when what was loaded has to be loaded again, whatever its fingerprint says."""

    @property
    def name(self) -> TableName:
        return TableName(self.dataset.name)

    @property
    def is_accelerated(self) -> bool:
        return self.dataset.acceleration is not None

    @property
    def is_being_loaded(self) -> bool:
        """Whether it is accelerated and its rows are not there yet, for no fault that is known."""
        is_wanted = self.is_accelerated and self.status in ("initializing", "refreshing")
        return is_wanted and self.version is None and self.error is None

    @property
    def is_ready(self) -> bool:
        """Whether this dataset lets the runtime be ready."""
        if self.ready_state == "on_registration" and self.error is None:
            return True
        return self.status in ("ready", "refreshing", "disabled")


@dataclass(frozen=True, slots=True)
class ViewState:
    """A view of the manifest at one moment; it is never better than what it reads."""

    view: View
    status: Status = "initializing"
    error: DatasetError | None = None
    waits_for: str = ""
    """What a view that is initializing waits for."""

    @property
    def name(self) -> TableName:
        return TableName(self.view.name)


def source_of(name: TableName) -> TableName:
    """Return the name under which the source of an accelerated dataset is read."""
    return TableName(f"{SOURCE_SCHEMA}.{name.replace('.', '__')}")


def tables_of(state: DatasetState) -> Mapping[TableName, TableSpec]:
    """Return the tables that a dataset is: itself, and the source of an accelerated one."""
    if not state.is_accelerated:
        return {} if state.spec is None else {state.name: state.spec}
    tables: dict[TableName, TableSpec] = {}
    if state.spec is not None:
        tables[source_of(state.name)] = state.spec
    if state.version is not None:
        tables[state.name] = state.version
    elif state.spec is not None and state.ready_state == "on_registration":
        tables[state.name] = state.spec
    return tables
