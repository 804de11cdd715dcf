"""The seam between an accelerated dataset and a source that tells what changes in it."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from caraway_core.changes import Changes
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.tables import Twice


class PositionLostError(DatasetError):
    """The source cannot go on from where the dataset is; it can begin anew."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """One dataset as its source of changes sees it: secrets are filled in, so it is not printed.

    `declared` and `primary_key` are what the manifest says, empty where the source is to say it.
    `twice` is what becomes of a row that is created though its key is there: "first" keeps that.
    """

    name: TableName
    connector: str
    path: str
    params: Mapping[str, str] = field(repr=False)
    declared: tuple[pa.Field, ...] = ()
    primary_key: tuple[str, ...] = ()
    twice: Twice = "last"


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """Changes that are applied as a whole, and the position after them.

    There may be no rows, where only the position moved; or not even that, which says that the
    source is there again. Where not `is_whole` the dataset is in
    between two states of its source until later batches are applied, too.
    """

    changes: Changes
    position: str
    is_whole: bool = True


class ChangeSource(Protocol):
    """Tells what changes in one dataset, from a position on.

    A position is a text that only the source reads. It is stored together with the changes and
    given back after a restart, so each change is applied exactly once.
    """

    async def schema(self) -> pa.Schema:
        """Return the columns of the dataset.

        Raises:
            DatasetError: they cannot be told.
        """
        ...

    async def primary_key(self) -> tuple[str, ...]:
        """Return the columns that tell rows apart.

        Raises:
            DatasetError: they cannot be told.
        """
        ...

    def batches(self, position: str | None) -> AsyncGenerator[SourceBatch, None]:
        """Yield changes after the position, for ever; None: all rows first, after a truncation.

        One iteration at a time; the next one begins after the last was closed.

        Raises:
            PositionLostError: changes after the position are gone from the source.
            DatasetError: the source fails, or its changes do not fit the dataset.
        """
        ...

    async def confirm(self, position: str) -> None:
        """Hear that everything up to the position of a batch is durable; it is never asked again.

        Raises:
            DatasetError: the source does not hear it; the iteration will fail as well.
        """
        ...

    async def aclose(self) -> None:
        """Let go of the source; what it keeps for this dataset stays there."""
        ...
