"""The messages between the serving process and an engine process.

Requests have a number, which their replies repeat. Messages are named tuples, which pickle several
times faster than dataclasses; one statement takes three of them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from caraway_core.ids import PrincipalId, TableName
from caraway_core.settings import LogFormat
from caraway_executor.engines.shared_memory import Place

if TYPE_CHECKING:
    # The serving process does not load the engine.
    from caraway_engine.execution.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options of an engine process.

    `memory_bytes` is the ceiling of the whole process. The main process refuses products, which run
    apart, in a process that can be ended for them alone. `serves` says what the process is the
    engine of.
    """

    settings: "EngineSettings"
    memory_bytes: int | None = None
    role: Literal["main", "apart"] = "main"
    serves: Literal["executor", "scheduler"] = "executor"
    log_format: LogFormat = "text"
    log_level: str = "info"
    niceness: int = 5
    """The steps by which its priority is lower than that of the process that starts it."""


class ForkRequest(NamedTuple):
    """To the fork server: start an engine process on the attached socket."""

    number: int
    options: EngineOptions


class Forked(NamedTuple):
    """From the fork server: an engine process was started."""

    number: int
    pid: int


class Exited(NamedTuple):
    """From the fork server: an engine process ended with this wait status."""

    pid: int
    status: int


class Call(NamedTuple):
    """To the engine: call a method. The reply is `Returned` or `CallFailed`."""

    number: int
    method: str
    arguments: tuple[Any, ...]


class Open(NamedTuple):
    """To the engine: call a method that returns a stream.

    The reply is `Opened`, then `BatchesSent` as the credit allows, then `StreamEnded`; or
    `CallFailed` at any point.
    """

    number: int
    method: str
    arguments: tuple[Any, ...]


class More(NamedTuple):
    """To the engine: this many more messages with rows of a stream may be sent.

    A stream that writes starts with the first of these.
    """

    number: int
    messages: int


class StopCall(NamedTuple):
    """To the engine: cancel a call or a stream.

    The reply is `Stopped`, once no thread works on it any more.
    """

    number: int


class Ping(NamedTuple):
    """To the engine: check that messages are read. The reply is `Pong`, immediately."""


class PlanningAsked(NamedTuple):
    """To the engine: return how long it plans for a call. The reply is `PlanningTook`."""

    number: int


class ThreadsProbe(NamedTuple):
    """To the engine: check that its threads take work. The reply is `Probed`, once they do."""


class Shown(NamedTuple):
    """To the engine: the body has the content of a system table; or the error."""

    number: int
    error: BaseException | None


class PlaceDropped(NamedTuple):
    """To the engine: the place in shared memory that starts here is not used any more."""

    start: int


class Embedded(NamedTuple):
    """To the engine: the body has the vectors that it requested; or the error."""

    number: int
    error: BaseException | None


class Begun(NamedTuple):
    """From the engine: a call or a stream was started."""

    number: int


class Returned(NamedTuple):
    """From the engine: the return value of a call."""

    number: int
    value: object


class CallFailed(NamedTuple):
    """From the engine: the exception of a call or a stream."""

    number: int
    error: BaseException


class Opened(NamedTuple):
    """From the engine: a stream was opened. `schema` is serialized."""

    number: int
    schema: bytes
    reads_only_catalog: bool
    written: TableName | None
    mark: str = ""
    """The mark of the commit of a write."""


class BatchesSent(NamedTuple):
    """From the engine: the body, or the place in shared memory, has batches of a stream.

    If `is_whole`, it is an IPC stream with schema and dictionaries; otherwise it is one message.
    """

    number: int
    is_whole: bool
    place: Place | None = None


class Answered(NamedTuple):
    """From the engine: a complete stream of one batch, which is in the body.

    It replaces `Opened`, `BatchesSent` and `StreamEnded`, for example for a point lookup.
    """

    number: int
    schema: bytes
    reads_only_catalog: bool
    is_whole: bool


class TableWritten(NamedTuple):
    """From the engine: a table in memory was written; the body has all of its rows."""

    table: TableName


class StreamEnded(NamedTuple):
    """From the engine: a stream has no more rows."""

    number: int


class Stopped(NamedTuple):
    """From the engine: a call or a stream was cancelled, and its threads are done."""

    number: int


class SystemTableWanted(NamedTuple):
    """From the engine: request the content of a system table, as a principal may see it."""

    number: int
    table: TableName
    viewer: PrincipalId | None


class VectorsWanted(NamedTuple):
    """From the engine: request the vectors of the texts in the body, by an embedding model."""

    number: int
    model: str
    mark: str


class Pong(NamedTuple):
    """From the engine: everything sent before the ping was processed, by this thread.

    It is sent once without a ping, when the process starts to read.
    """

    thread: int


class PlanningTook(NamedTuple):
    """From the engine: the processor time that planning for a call has used until now."""

    number: int
    seconds: float


class Probed(NamedTuple):
    """From the engine: a thread that plans and one that computes rows were free."""


class Noted(NamedTuple):
    """From the engine: the view that it is about to plan, which is blamed if the process ends."""

    registering: TableName | None
