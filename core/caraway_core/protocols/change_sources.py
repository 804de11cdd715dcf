"""The protocol of sources that report changes of an accelerated dataset."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from caraway_core.changes import Changes
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import Twice


class PositionLostError(DatasetError):
    """The source no longer has the changes after the dataset's position; reload the dataset."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """One dataset as its change source sees it. Secrets are filled in, so it is never printed.

    `declared` and `primary_key` come from the manifest; empty means that the source decides.
    `twice` is the policy for an insert whose key exists; "first" keeps the existing row. `learned`
    returns the columns that a dataset that declares none has from earlier events, or None.
    """

    name: TableName
    connector: str
    path: str
    params: Mapping[str, str] = field(repr=False)
    declared: tuple[pa.Field, ...] = ()
    primary_key: tuple[str, ...] = ()
    twice: Twice = "last"
    learned: Callable[[], pa.Schema | None] = lambda: None

    def as_source(self) -> SourceRequest:
        """Return the request for the table whose changes are followed."""
        return SourceRequest(
            self.name, self.connector, self.path, self.params, self.declared, "read",
            Path(), Path(),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Changes that are applied atomically, and the source position after them.

    A batch without rows moves only the position, or reports that the source is available again. If
    `is_whole` is false, the dataset is between two states of its source until later batches are
    applied. `made_at` is when its last change was made, if the source says so.
    """

    changes: Changes
    position: str
    is_whole: bool = True
    made_at: datetime | None = None


class ChangeSource(Protocol):
    """Streams the changes of one dataset, starting at a position.

    A position is text that only the source interprets. It is stored with the changes and passed
    back after a restart, so each change is applied exactly once.
    """

    async def schema(self) -> pa.Schema:
        """Return the columns of the dataset.

        Raises:
            DatasetError: the columns cannot be determined.
        """
        ...

    async def primary_key(self) -> tuple[str, ...]:
        """Return the primary key columns.

        Raises:
            DatasetError: the key cannot be determined.
        """
        ...

    def batches(self, position: str | None) -> AsyncGenerator[SourceBatch, None]:
        """Yield the changes after the position, without end; None: a truncation and all rows first.

        Only one iteration may run at a time; close it before starting the next.

        Raises:
            PositionLostError: the source no longer has the changes after the position.
            DatasetError: the source fails, or its changes do not fit the dataset.
        """
        ...

    async def confirm(self, position: str) -> None:
        """Acknowledge that all changes up to the position are durable; the source may drop them.

        Raises:
            DatasetError: the source cannot be reached; the iteration will fail as well.
        """
        ...

    async def aclose(self) -> None:
        """Close the connection; the source keeps the state that it stores for this dataset."""
        ...
