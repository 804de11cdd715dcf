"""Counts refreshes for the metrics page, and records each in the task history."""

import time
from collections import defaultdict
from typing import Protocol

from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.overrides import LoadMode
from caraway_acceleration.versions.version import DatasetVersion
from caraway_core.concurrency.clocks import NanosecondsClock
from caraway_core.ids import TableName
from caraway_core.process.durations import Durations, Labels
from caraway_scheduler.history.tasks import TaskRecord
from caraway_serving import spans
from caraway_serving.spans import Span

TASK = "accelerated_refresh"
_STOPPED = "the refresh was stopped before its end"
Ended = events.Succeeded | events.RunFailed | events.RunCancelled


class RefreshRecords(Protocol):
    """Where refreshes are recorded; the task history implements it."""

    def add(self, record: TaskRecord) -> None:
        """Add the record of a refresh that ended."""
        ...


class Counting:
    """Counts the refreshes of this process since its start, by dataset.

    `durations` covers refreshes that made a version. A cancelled refresh is not an error.
    """

    def __init__(
        self,
        records: RefreshRecords | None = None,
        clock_ns: NanosecondsClock = time.time_ns,
    ) -> None:
        self.durations = Durations()
        self.errors: dict[Labels, int] = defaultdict(int)
        self._records = records
        self._clock_ns = clock_ns

    def count_refresh(self, name: TableName, mode: LoadMode) -> "Counted":
        """Count a refresh that starts.

        Further work of the current asyncio task, also on executors, becomes a child of its span.
        """
        # The series exists from the first refresh on, so that alerts can compare a failure with it.
        self.errors[name,] += 0
        span = spans.start(None)
        spans.current.set(span)
        return Counted(self, name, mode, span, self._clock_ns())

    def end(self, counted: "Counted", ended: Ended, version: DatasetVersion | None) -> None:
        """Count the end of a refresh, and record it in the task history."""
        ended_ns = self._clock_ns()
        labels: dict[str, str] = {"dataset": counted.name, "mode": counted.mode}
        match ended:
            case events.Succeeded(version=number):
                self.durations.add((counted.name,), (ended_ns - counted.began_ns) / 1e6)
                labels["version"] = str(number)
                if version is not None and version.number == number:
                    labels["rows"] = str(version.rows)
            case events.RunFailed():
                self.errors[counted.name,] += 1
        if self._records is None:
            return
        self._records.add(
            TaskRecord(
                span=counted.span,
                task=TASK,
                input=f"{counted.name}: {counted.mode}",
                start_ns=counted.began_ns,
                end_ns=ended_ns,
                error_message=_error(ended),
                labels=labels,
            )
        )


class Counted:
    """A refresh that is running."""

    def __init__(
        self, counting: Counting, name: TableName, mode: LoadMode, span: Span, began_ns: int
    ) -> None:
        self.name = name
        self.mode = mode
        self.span = span
        self.began_ns = began_ns
        self._counting = counting

    def end(self, ended: Ended, version: DatasetVersion | None) -> None:
        """Count the end of the refresh; `version` is the current version, if there is one."""
        self._counting.end(self, ended, version)


def _error(ended: Ended) -> str | None:
    match ended:
        case events.RunFailed(error=error):
            return error
        case events.RunCancelled():
            return _STOPPED
    return None
