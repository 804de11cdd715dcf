"""The current states of datasets and views."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset, View
from caraway_core.manifest.texts.names import SOURCE_SCHEMA
from caraway_core.tables import StoredTable, TableSpec

ReadyState = Literal["on_load", "on_registration"]
Status = Literal["initializing", "ready", "disabled", "error", "refreshing", "shuttingdown"]


@dataclass(slots=True)
class DatasetState:
    """The state of a dataset of the manifest."""

    dataset: Dataset
    ready_state: ReadyState = "on_load"
    status: Status = "initializing"
    error: DatasetError | None = None
    spec: TableSpec | None = None
    version: StoredTable | None = None
    """The version that queries read of an accelerated dataset, while `spec` is its source."""
    source_error: DatasetError | None = None
    """Why the source of an accelerated dataset was found but cannot be planned.
    """
    is_loaded: bool = False
    fingerprint: str | None = None
    resolved: str | None = None
    """The fingerprint of the data in `spec`; the latest fingerprint may differ."""
    attempts: int = 0
    is_kept: bool = False
    """True if the accelerator has accepted the dataset."""
    is_recalled: bool = False
    """True if the accelerator has looked for stored rows."""
    stale: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to force a reload, even if the fingerprint is unchanged."""

    @property
    def name(self) -> TableName:
        return TableName(self.dataset.name)

    @property
    def is_accelerated(self) -> bool:
        return self.dataset.acceleration is not None

    @property
    def lacks_source(self) -> bool:
        """True if nothing can be loaded, because the last attempt to read its source failed."""
        return self.attempts > 0 and self.version is None

    @property
    def is_being_loaded(self) -> bool:
        """True if it is accelerated, has no rows yet and has no known error."""
        is_wanted = self.is_accelerated and self.status in ("initializing", "refreshing")
        return is_wanted and self.version is None and self.error is None

    @property
    def was_tried(self) -> bool:
        """True if its source was tried, and its stored rows were looked for."""
        may_have_rows = self.is_accelerated and self.is_kept and not self.is_recalled
        return (self.error is not None or self.attempts > 0) and not may_have_rows

    @property
    def is_ready(self) -> bool:
        """True if this dataset allows the runtime to be ready."""
        if self.ready_state == "on_registration" and self.error is None:
            return True
        return self.status in ("ready", "refreshing", "disabled")


@dataclass(frozen=True, slots=True)
class ViewState:
    """The state of a view of the manifest, derived from the states of its tables."""

    view: View
    status: Status = "initializing"
    error: DatasetError | None = None
    waits_for: str = ""
    """The table that an initializing view waits for."""

    @property
    def name(self) -> TableName:
        return TableName(self.view.name)


def source_of(name: TableName) -> TableName:
    """Return the table name of the source of an accelerated dataset."""
    return TableName(f"{SOURCE_SCHEMA}.{name.replace('.', '__')}")


def tables_of(state: DatasetState) -> Mapping[TableName, TableSpec]:
    """Return the tables of a dataset: itself, and its source if it is accelerated."""
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
