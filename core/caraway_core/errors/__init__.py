"""The error classes of Caraway; a class exists only where code catches it.

CarawayError
├── ManifestError            the manifest cannot be used; carries every problem found
├── UnknownPluginError       a name that the registry does not know
├── NotInstalledError        a known name whose package is missing; names the extra
├── DatasetError             a dataset that cannot be loaded; carries a stable code
├── InvalidRequestError      a request that its dataset cannot serve; also the base of others
├── NotFoundError            a name in the request that does not exist
├── DeadlineError            a request that took longer than its time limit; it may be retried
├── UnavailableError         a component is away or starting; retry after `retry_after_s`
├── ShuttingDownError        work that arrived after the process began to stop
├── ExecutorLostError        an executor is gone or does not respond
├── NotDistributableError    a statement that can only run whole, on one executor
├── PlanLostError            the planner of a running statement is gone
├── PartLostError            rows of an exchange were lost with the executor that held them
├── CatalogMovedError        a task names a catalog version that the executor does not have
├── StateAwayError           the state store does not respond; retry after `retry_after_s`
│   ├── StateFullError           it is full; retry after `retry_after_s`
│   └── StateUnsureError         it did not respond to a write, which may have succeeded
├── ModelError               a model that cannot be loaded, or a call of it that failed; has a code
│   ├── ModelInputError          the call is wrong; another one can succeed
│   └── ModelAwayError           the model is loading, limited or away; has `retry_after_s`
├── ToolError                a tool failed, or a service that it called
├── JobNotFoundError         the job does not exist, or belongs to another principal
├── JobConflictError         an Idempotency-Key was used for another statement
└── QueryError               one statement failed; the process is not affected
    ├── InvalidQueryError        the statement or its parameters are wrong
    │   ├── ParametersError          the values do not fit the statement
    │   └── TableNotFoundError       the statement names a table that does not exist
    ├── DatasetLoadingError      a dataset is still loading; retry after `retry_after_s`
    ├── ModelNotReadyError       it uses a model that is loading or away; has `retry_after_s`
    ├── SourceNotReadError       sources had to answer, but the statement reads none of them
    ├── MovedOnError             the rows to change were changed concurrently; run it again
    ├── QueryForbiddenError      the caller may not do this
    ├── StatementRefusedError    it ended the engine before, and is refused for some minutes
    ├── QueryTimeoutError        the time limit passed
    ├── QueryCancelledError      it was cancelled
    ├── OverloadedError          the queue is full; retry after `retry_after_s`
    ├── OutOfMemoryQueryError    it does not fit in the memory limit
    ├── AnswerCutError           an executor was lost in the middle of the answer
    ├── ResultTooLargeError      a stored answer is larger than allowed
    └── ExecutionError           a source or the engine failed while it ran
        ├── DatasetDamagedError  stored rows of a dataset are damaged; they are loaded again
        ├── DiskFullError        a disk is full; retry after `retry_after_s`
        ├── ExecutorsLostError   every try lost an executor; nothing was written
        └── ResultStoreError     an answer cannot be stored, or cannot be read from its store
            ├── ResultStoreAwayError  the store is away; retry after `retry_after_s`
            └── DamagedChunkError     a chunk is missing or its bytes have changed

What each class means to a client (its status, its code, a retry) is one table: `outcomes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from caraway_core.ids import CatalogVersion, ExecutorId, TableName

FULL_RETRY_AFTER_S = 10
"""Disks rarely free up sooner, and more frequent retries only add load."""
DatasetErrorType = Literal["auth", "not_found", "invalid", "schema", "unavailable", "unsupported"]

ModelErrorType = Literal[
    "auth",
    "context_length",
    "failed",
    "invalid",
    "not_found",
    "quota",
    "rate_limit",
    "timeout",
    "unavailable",
]


class CarawayError(Exception):
    """Base class of errors that Caraway raises on purpose; the message is meant for users."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross between processes; by default only `args` would, which is the message.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(
    class_: type[CarawayError], args: tuple[object, ...], fields: dict[str, object]
) -> CarawayError:
    error = class_.__new__(class_)
    error.args = args
    error.__dict__.update(fields)
    return error


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in a manifest, and its location."""

    file: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class ManifestError(CarawayError):
    """The manifest cannot be used; `problems` lists everything wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class UnknownPluginError(CarawayError):
    """The registry has no plug-in of this name."""


class NotInstalledError(CarawayError):
    """The plug-in is known, but its package is not installed."""


class DatasetError(CarawayError):
    """A dataset that cannot be loaded; `code` is stable and safe to alert on."""

    category = "dataset"

    def __init__(self, type_: DatasetErrorType, message: str) -> None:
        super().__init__(message)
        self.type = type_

    @property
    def code(self) -> str:
        return f"{self.category}.{self.type}"


class InvalidRequestError(CarawayError):
    """The request is invalid; retrying it unchanged cannot succeed."""


class NotFoundError(CarawayError):
    """A request names something that does not exist."""


class DeadlineError(CarawayError):
    """A request did not finish within its time limit."""


class UnavailableError(CarawayError):
    """A component is unavailable or not ready; the request had no effect."""

    def __init__(self, message: str, retry_after_s: int = 2) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ShuttingDownError(CarawayError):
    """Work arrived after the process began to shut down."""


class ExecutorLostError(CarawayError):
    """An executor is gone or does not respond; its work can run on another executor."""

    def __init__(self, executor_id: ExecutorId, cause: str) -> None:
        super().__init__(f"executor '{executor_id}' is lost: {cause}")
        self.executor_id = executor_id
        self.cause = cause


class NotDistributableError(CarawayError):
    """A statement turned out not to be distributable; it can still run on one executor."""


class PlanLostError(CarawayError):
    """The process that planned a running statement is gone; plan the statement again."""


class PartLostError(CarawayError):
    """A table of an exchange is lost; the task that produced it must run again."""

    def __init__(self, message: str, executor_id: ExecutorId | None = None) -> None:
        super().__init__(message)
        self.executor_id = executor_id


class CatalogMovedError(CarawayError):
    """A task uses a catalog version that its executor does not have; plan it again."""

    def __init__(self, version: CatalogVersion) -> None:
        super().__init__(f"the executor does not have version {version} of the catalog")
        self.version = version


class StateAwayError(CarawayError):
    """The state store is unavailable; the failed call changed nothing."""

    def __init__(self, message: str, retry_after_s: int = 2) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class StateFullError(StateAwayError):
    """The state store is full; the failed call changed nothing."""

    def __init__(self, message: str, retry_after_s: int = FULL_RETRY_AFTER_S) -> None:
        super().__init__(message, retry_after_s)


class StateUnsureError(StateAwayError):
    """The state store did not confirm a write, which may or may not have been applied."""


class ModelError(CarawayError):
    """A model could not be loaded, or a call of it failed; `code` is stable and safe to alert on.

    The message names the model and has no words of a provider that may hold a secret.
    """

    def __init__(self, message: str, type_: ModelErrorType = "failed") -> None:
        super().__init__(message)
        self.type = type_

    @property
    def code(self) -> str:
        return f"model.{self.type}"


class ModelInputError(ModelError):
    """The call of a model is wrong: too long, of the wrong shape, or not supported."""

    def __init__(self, message: str, type_: ModelErrorType = "invalid") -> None:
        super().__init__(message, type_)


class ModelAwayError(ModelError):
    """A model is loading, its provider limits the rate, is overloaded or does not respond."""

    def __init__(
        self, message: str, type_: ModelErrorType = "unavailable", retry_after_s: int = 2
    ) -> None:
        super().__init__(message, type_)
        self.retry_after_s = retry_after_s


class ToolError(CarawayError):
    """A tool failed, or what it asked did; the message is meant for the model that called it."""


class JobNotFoundError(CarawayError):
    """The caller has no such job."""


class JobConflictError(CarawayError):
    """An Idempotency-Key was reused for a different statement."""


class QueryError(CarawayError):
    """One statement failed."""


class InvalidQueryError(QueryError):
    """The statement or its parameters are invalid, or its data cannot be computed with."""


class ParametersError(InvalidQueryError):
    """The given values do not match the placeholders of the statement."""


class TableNotFoundError(InvalidQueryError):
    """The statement names a table that is not in the catalog."""

    def __init__(self, message: str, table: TableName) -> None:
        super().__init__(message)
        self.table = table


class DatasetLoadingError(QueryError):
    """The statement reads a dataset that is still loading; it may be retried."""

    def __init__(self, message: str, retry_after_s: int = 2) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelNotReadyError(QueryError):
    """The statement uses a model that is loading, limited or away; it may be retried."""

    def __init__(self, message: str, retry_after_s: int = 2) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class SourceNotReadError(QueryError):
    """The statement was limited to the sources of datasets, but reads none of them."""


class MovedOnError(QueryError):
    """Another statement changed the rows meanwhile; the statement may be retried."""


class QueryForbiddenError(QueryError):
    """The caller may not run this statement."""


class StatementRefusedError(QueryError):
    """The statement ended the engine too often and is refused for a while."""


class QueryTimeoutError(QueryError):
    """The statement ran longer than the time limit."""


class QueryCancelledError(QueryError):
    """The statement was cancelled."""


class OverloadedError(QueryError):
    """The queue of waiting statements is full."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class OutOfMemoryQueryError(QueryError):
    """The statement exceeds the memory limit, even with spilling."""


class ExecutionError(QueryError):
    """A source or the engine failed while the statement ran."""


class ExecutorsLostError(ExecutionError):
    """Each try of the statement lost an executor, and wrote nothing; it may be retried."""


class AnswerCutError(QueryError):
    """An executor was lost while the answer was read; the statement may be retried."""


class ResultTooLargeError(QueryError):
    """A stored answer exceeds its size limit."""


class ResultStoreError(ExecutionError):
    """An answer cannot be stored or read back."""


class DiskFullError(ExecutionError):
    """A disk, or the store on it, is full."""

    def __init__(self, message: str, retry_after_s: int = FULL_RETRY_AFTER_S) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DatasetDamagedError(ExecutionError):
    """Stored rows of a dataset are missing or corrupt."""

    def __init__(self, table: TableName) -> None:
        super().__init__(
            f"dataset '{table}': a part of its stored rows is damaged or missing. It is repaired "
            "from a copy, or loaded again where its source has the rows; send the query again in "
            "a moment, and see GET /v1/datasets?status=true"
        )
        self.table = table
        self.retry_after_s = 5


class ResultStoreAwayError(ResultStoreError):
    """The result store is unavailable or its disk fails; no acknowledged data is lost."""

    def __init__(self, message: str, retry_after_s: int = 5) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DamagedChunkError(ResultStoreError):
    """A stored chunk is missing or corrupt; `key` is the key that it is stored under."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key
