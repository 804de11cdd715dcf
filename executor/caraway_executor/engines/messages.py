"""What the serving process and an engine process say to each other.

Requests have a number, which their answers carry. They are named tuples: those are pickled and
unpickled several times faster than dataclasses, and one statement takes three of them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from caraway_core.ids import PrincipalId, TableName
from caraway_core.settings import LogFormat

if TYPE_CHECKING:
    # The serving process has no engine.
    from caraway_engine.execution.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What an engine process is started with.

    `memory_bytes` is the ceiling of the whole process. The main process refuses joins of all rows
    with all rows, which run apart: in a process that can be ended for them alone. `serves` names
    what it is the engine of.
    """

    settings: "EngineSettings"
    memory_bytes: int | None = None
    role: Literal["main", "apart"] = "main"
    serves: Literal["executor", "scheduler"] = "executor"
    log_format: LogFormat = "text"
    log_level: str = "info"


class ForkRequest(NamedTuple):
    """To the fork server: start an engine process, on the socket that comes along."""

    number: int
    options: EngineOptions


class Forked(NamedTuple):
    """From the fork server: an engine process was started."""

    number: int
    pid: int


class Exited(NamedTuple):
    """From the fork server: an engine process has ended, with this wait status."""

    pid: int
    status: int


class Call(NamedTuple):
    """To the engine: call a method of what it serves. The answer is `Returned` or `CallFailed`."""

    number: int
    method: str
    arguments: tuple[Any, ...]


class Open(NamedTuple):
    """To the engine: call a method that gives a stream.

    The answer is `Opened`, then `BatchSent` as the credit allows, then `StreamEnded`; or
    `CallFailed`, at any point.
    """

    number: int
    method: str
    arguments: tuple[Any, ...]


class More(NamedTuple):
    """To the engine: so many more batches of a stream may be sent.

    A stream that writes begins with the first of these.
    """

    number: int
    batches: int


class StopCall(NamedTuple):
    """To the engine: stop a call or a stream.

    The answer is `Stopped`, when no thread works on it any more.
    """

    number: int


class Ping(NamedTuple):
    """To the engine: show that messages are read. The answer is `Pong`, at once."""


class Shown(NamedTuple):
    """To the engine: the content of a system table is in the body; or why there is none."""

    number: int
    error: BaseException | None


class Begun(NamedTuple):
    """From the engine: a call or a stream has been looked at."""

    number: int


class Returned(NamedTuple):
    """From the engine: what a call returned."""

    number: int
    value: Any


class CallFailed(NamedTuple):
    """From the engine: what a call or a stream raised."""

    number: int
    error: BaseException


class Opened(NamedTuple):
    """From the engine: a stream has begun. `schema` is serialized."""

    number: int
    schema: bytes
    reads_only_catalog: bool
    written: TableName | None


class BatchSent(NamedTuple):
    """From the engine: a batch of a stream is in the body.

    `is_whole`: the body is an IPC stream with its schema and dictionaries, else one message.
    """

    number: int
    is_whole: bool


class Answered(NamedTuple):
    """From the engine: a stream with all of its rows, one batch, which is in the body.

    It stands for `Opened`, `BatchSent` and `StreamEnded`, as a point lookup would send them.
    """

    number: int
    schema: bytes
    reads_only_catalog: bool
    is_whole: bool


class TableWritten(NamedTuple):
    """From the engine: a table in memory was written to; all of its rows are in the body."""

    table: TableName


class StreamEnded(NamedTuple):
    """From the engine: a stream has no more rows."""

    number: int


class Stopped(NamedTuple):
    """From the engine: a call or a stream was stopped, as far as its threads are concerned."""

    number: int


class SystemTableWanted(NamedTuple):
    """From the engine: the content of a system table is wanted, as a principal may see it."""

    number: int
    table: TableName
    viewer: PrincipalId | None


class Pong(NamedTuple):
    """From the engine: what was sent before the ping has been looked at, by this thread.

    It comes once without a ping, when the process begins to read.
    """

    thread: int


class Noted(NamedTuple):
    """From the engine: what it is about to register, so that it can be blamed if that ends it."""

    registering: TableName | None
