"""Where change events enter: what the route asks of the datasets that take them."""

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
    """The dataset does not take changes, or not these."""


class RequestReusedError(JobConflictError):
    """The key of a request was used for other changes before."""


class QueueFullError(DeadlineError):
    """Changes were not applied within their time; the text says what is known of them."""


class StreamStoppedError(UnavailableError):
    """The dataset is being unloaded or loaded anew; come back later."""


@dataclass(frozen=True, slots=True)
class Whence:
    """Where changes of a followed source stand: after one position, and up to another.

    They are refused where the dataset is at another position. Statements do not read them before
    something `is_whole` has come.
    """

    after: str | None
    position: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Upon:
    """A state of a dataset: its base by the key, and the log that is read."""

    base: str
    log: Log


class Ingest(Protocol):
    """Takes changes of datasets.

    A Protocol, since the followers of change sources belong to the datasets that they fill:
    `service` is built on them.
    """

    def target(self, name: TableName) -> ChangeTarget:
        """Tell what changes of a dataset are read into.

        Raises:
            NoDatasetError, NotAcceleratedError: there is no such dataset.
            ChangesRefusedError: it does not take changes.
        """
        ...

    async def apply(
        self,
        name: TableName,
        changes: Changes,
        request_id: str | None,
        deadline_s: float,
        *,
        source: Whence | None = None,
    ) -> int:
        """Make changes durable and visible, all or none; return how many events they came from.

        With a `request_id` that was applied already, nothing is done again. The position of a
        followed `source` is kept with its changes, of which there may be none.

        Raises:
            QueueFullError: the time passed.
            StreamStoppedError: the dataset goes or is loaded anew.
            ChangesRefusedError: the dataset cannot take them.
            QueryError: applying them failed.
        """
        ...

    async def position(self, name: TableName) -> str | None:
        """Return the last position that is kept with changes; None: there is none.

        Raises:
            NoDatasetError, NotAcceleratedError: there is no such dataset.
            StateAwayError: it cannot be looked up now.
        """
        ...
