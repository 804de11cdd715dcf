"""The interface through which change events enter datasets, and its errors."""

from dataclasses import dataclass
from typing import Protocol

from caraway_core.changes import Changes, Log
from caraway_core.errors import (
    DeadlineError,
    InvalidRequestError,
    JobConflictError,
    UnavailableError,
)
from caraway_core.ids import TableName
from caraway_plugins.changes.target import ChangeTarget


class ChangesRefusedError(InvalidRequestError):
    """The dataset does not accept changes, or not these."""


class RequestReusedError(JobConflictError):
    """The key of the request was used for other changes before."""


class QueueFullError(DeadlineError):
    """Changes were not applied within the time limit; the text describes their state."""


class StreamStoppedError(UnavailableError):
    """The dataset is being unloaded or reloaded; retry later."""


@dataclass(frozen=True, slots=True)
class SourcePositions:
    """The positions in a followed source before and after some changes.

    Changes are rejected if the dataset is at a position other than `after`. Statements read them
    once changes with `is_whole` have been applied.
    """

    after: str | None
    position: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class BaseWithLog:
    """A state of a dataset: the key of its base, and the log that is read."""

    base: str
    log: Log


class Ingest(Protocol):
    """Accepts changes of datasets."""

    def target(self, name: TableName) -> ChangeTarget:
        """Return the columns and keys that changes of a dataset are decoded for.

        Raises:
            NoDatasetError, NotAcceleratedError: there is no such accelerated dataset.
            ChangesRefusedError: it does not accept changes.
        """
        ...

    async def apply(
        self,
        name: TableName,
        changes: Changes,
        request_id: str | None,
        deadline_s: float,
        *,
        source: SourcePositions | None = None,
    ) -> int:
        """Make changes durable and visible, all or none; return the number of their events.

        Changes whose `request_id` was already applied are not applied again. The position of a
        followed `source` is stored with its changes, even if there are none.

        Raises:
            QueueFullError: the time limit passed.
            StreamStoppedError: the dataset is being removed or reloaded.
            ChangesRefusedError: the dataset cannot accept them.
            QueryError: applying them failed.
        """
        ...

    async def position(self, name: TableName) -> str | None:
        """Return the position that is stored with the changes, or None.

        Raises:
            NoDatasetError, NotAcceleratedError: there is no such accelerated dataset.
            StateAwayError: the position cannot be read now.
        """
        ...
