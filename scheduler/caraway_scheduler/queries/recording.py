"""Records statements that have ended: counters, durations and their task in the history."""

import asyncio

import pyarrow as pa

from caraway_core.errors import CarawayError
from caraway_scheduler.history.tasks import TaskHistory, TaskRecord
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving import formats
from caraway_serving.tallies import ApiTallies

_LONGEST_OUTPUT = 8_192


class StatementRecords:
    """Counts statements, and adds each to the history of tasks."""

    def __init__(self, history: TaskHistory, tallies: ApiTallies) -> None:
        self._history = history
        self._tallies = tallies

    def began(self, request: QueryRequest, waited_ms: float) -> None:
        """Record how long a statement took until its first rows."""
        self._tallies.query_first_rows.add((request.protocol,), waited_ms)

    def ended(
        self,
        request: QueryRequest,
        start_ns: int,
        end_ns: int,
        error: BaseException | None,
        rows_sent: int,
        sample: pa.RecordBatch | None = None,
        cache: str = "",
    ) -> None:
        """Record how a statement ended; `sample` are its first rows."""
        tallies = self._tallies
        tallies.query_executions[(request.protocol,)] += 1
        tallies.query_durations.add((request.protocol,), (end_ns - start_ns) / 1e6)
        tallies.query_returned_rows[(request.protocol,)] += rows_sent
        if error is not None:
            tallies.query_failures[(request.protocol, type(error).__name__)] += 1
        labels = {"protocol": request.protocol, "rows_produced": str(rows_sent)}
        if cache:
            labels["results_cache_hit"] = "true"
        if request.user_agent:
            labels["user_agent"] = request.user_agent
        captures_output = self._history.settings.captures_output
        self._history.add(
            TaskRecord(
                span=request.span,
                task="sql_query",
                input=request.sql,
                start_ns=start_ns,
                end_ns=end_ns,
                error_message=_message(error),
                captured_output=_captured(sample) if captures_output else None,
                labels=labels,
                principal=request.principal.id,
            )
        )


def _captured(sample: pa.RecordBatch | None) -> str:
    if sample is None:
        return "[]"
    encoder = formats.make("json")
    parts = (encoder.encode_start(sample.schema), encoder.encode(sample), encoder.end(0))
    return b"".join(parts).decode()[:_LONGEST_OUTPUT]


def _message(error: BaseException | None) -> str | None:
    if error is None:
        return None
    if isinstance(error, CarawayError):
        return error.message
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "the client went away"
    return type(error).__name__
