import pickle
import re
from collections import Counter
from pathlib import Path

import pytest

from caraway_core.concurrency import tasks
from caraway_executor.endpoints import metrics
from caraway_executor.endpoints.tallies import ExecutorTallies

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


def counted() -> ExecutorTallies:
    tallies = ExecutorTallies()
    tallies.task_ended(3)
    tallies.task_ended(70_000)
    tallies.wrote(10, 100)
    tallies.wrote(1, 10)
    tallies.read(2, 20, is_local=True)
    tallies.read(3, 30, is_local=False)
    return tallies


def test_page_tells_what_was_counted() -> None:
    page = metrics.render(counted(), active_tasks=4).decode().splitlines()
    for line in (
        "executor_tasks_active 4.0",
        'executor_task_duration_ms_bucket{le="2.5"} 0.0',
        'executor_task_duration_ms_bucket{le="5.0"} 1.0',
        'executor_task_duration_ms_bucket{le="+Inf"} 2.0',
        "executor_task_duration_ms_sum 70003.0",
        "executor_shuffle_write_rows_total 11.0",
        "executor_shuffle_write_bytes_total 110.0",
        "executor_shuffle_read_local_rows_total 2.0",
        "executor_shuffle_read_local_bytes_total 20.0",
        "executor_shuffle_read_remote_rows_total 3.0",
        "executor_shuffle_read_remote_bytes_total 30.0",
    ):
        assert line in page, line


def test_page_counts_background_work_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "FAILURES", Counter({"look at memory": 2}))
    page = metrics.render(ExecutorTallies(), 0).decode().splitlines()
    assert 'background_failures_total{work="look at memory"} 2.0' in page


def test_tallies_cross_to_the_process_that_serves_them() -> None:
    sent = pickle.loads(pickle.dumps(counted()))
    assert metrics.render(sent, 0) == metrics.render(counted(), 0)


def test_reference_and_page_name_the_same_metrics() -> None:
    page = metrics.render(ExecutorTallies(), 0).decode()
    served = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    section = DOCS.read_text().split("### Executors of a cluster")[1].split("\n##")[0]
    told = set(re.findall(r"`([a-z_]+)`", "\n".join(re.findall(r"^\|.*?\|", section, re.M))))
    assert told == served
