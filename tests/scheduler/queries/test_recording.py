"""Statements that have ended, in the counters and in the history of tasks."""

import asyncio
import json

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import NodeId
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory, TaskRecord
from caraway_scheduler.queries.recording import StatementRecords
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving.access import ANONYMOUS
from caraway_serving.spans import Span
from caraway_serving.tallies import ApiTallies

ROWS = pa.record_batch({"a": ["x" * 100] * 1_000})


class _Recorded:
    def __init__(self, *, captures_output: bool = False) -> None:
        settings = HistorySettings(captures_output=captures_output)
        history = TaskHistory(settings, NodeId("n"), lambda: 0)
        self.tasks: list[TaskRecord] = []
        history.subscribe(self.tasks.append)
        self.tallies = ApiTallies()
        self.records = StatementRecords(history, self.tallies)

    def ended(self, error: BaseException | None = None, **more: object) -> TaskRecord:
        request = QueryRequest("SELECT 1", ANONYMOUS, Span("t", "s"), user_agent="curl")
        sample = more.get("sample")
        self.records.ended(
            request, 1_000_000, 3_000_000, error, 7,
            sample if isinstance(sample, pa.RecordBatch) else None, str(more.get("cache", "")),
        )  # fmt: skip
        return self.tasks[-1]


def test_statement_is_counted_once_with_its_rows() -> None:
    recorded = _Recorded()
    task = recorded.ended()
    assert (task.task, task.input, task.duration_ms) == ("sql_query", "SELECT 1", 2.0)
    assert task.labels == {"protocol": "http", "rows_produced": "7", "user_agent": "curl"}
    assert task.error_message is None
    assert recorded.tallies.query_executions == {("http",): 1}
    assert recorded.tallies.query_returned_rows == {("http",): 7}
    assert recorded.tallies.query_failures == {}


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (InvalidQueryError("no column 'a'"), "InvalidQueryError", "no column 'a'"),
        (asyncio.CancelledError(), "CancelledError", "the client went away"),
        (GeneratorExit(), "GeneratorExit", "the client went away"),
        (ValueError("password=secret /srv/data"), "ValueError", "ValueError"),
        (KeyError("secret"), "KeyError", "KeyError"),
    ],
)
def test_failure_is_counted_by_its_kind_and_tells_no_secrets(
    error: BaseException, kind: str, message: str
) -> None:
    recorded = _Recorded()
    task = recorded.ended(error)
    assert recorded.tallies.query_failures == {("http", kind): 1}
    assert recorded.tallies.query_executions == {("http",): 1}
    assert task.error_message == message
    assert "secret" not in str(task)


def test_answer_of_the_cache_is_marked() -> None:
    assert _Recorded().ended(cache="hit").labels["results_cache_hit"] == "true"
    assert "results_cache_hit" not in _Recorded().ended().labels


def test_output_is_kept_only_where_it_is_wanted_and_only_its_beginning() -> None:
    assert _Recorded().ended(sample=ROWS).captured_output is None
    wanted = _Recorded(captures_output=True)
    assert wanted.ended().captured_output == "[]"
    few = wanted.ended(sample=ROWS.slice(0, 2)).captured_output
    assert few is not None and json.loads(few) == [{"a": "x" * 100}] * 2
    many = wanted.ended(sample=ROWS).captured_output
    assert many is not None and len(many) == 8_192
    none = wanted.ended(sample=ROWS.slice(0, 0)).captured_output
    assert none is not None and json.loads(none) == []


def test_time_until_the_first_rows_is_counted_by_protocol() -> None:
    recorded = _Recorded()
    request = QueryRequest("SELECT 1", ANONYMOUS, Span("t", "s"), protocol="flight")
    recorded.records.began(request, 5.0)
    assert recorded.tallies.query_first_rows is not None
    assert not recorded.tasks
