"""Metrics of asynchronous queries; `scheduler_job_queue_depth` is the peer's name."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_scheduler.jobs.opening import Jobs
from caraway_serving.metric_families import Families


def collect(jobs: Jobs, families: Families) -> Iterable[Metric]:
    """Read them from the state."""
    tallies = jobs.tallies
    yield families.gauges(
        "query_jobs",
        "Asynchronous queries that are kept, of all schedulers.",
        ("status",),
        {(status,): count for status, count in jobs.replica.counts.items()},
    )
    yield families.gauge(
        "scheduler_job_queue_depth", "Jobs that wait here for their turn.", jobs.foreman.queued
    )
    yield families.gauge("query_jobs_running", "Jobs that run here.", jobs.foreman.running)
    yield families.counter(
        "query_jobs_submitted", "Jobs submitted here.", (), {(): tallies.submitted}
    )
    yield families.counter(
        "query_jobs_taken_over",
        "Jobs taken from schedulers that were gone.",
        (),
        {(): tallies.taken_over},
    )
    yield families.counter(
        "query_jobs_finished", "Jobs that ended here.", ("status",), tallies.finished
    )
    yield families.counter(
        "query_jobs_stored_bytes", "Bytes of answers stored.", (), {(): tallies.stored_bytes}
    )
    yield families.counter(
        "query_jobs_stored_rows", "Rows of answers stored.", (), {(): tallies.stored_rows}
    )
    yield families.histogram(
        "query_job_wait_ms", "Time of jobs from submit to start, in milliseconds.", (),
        tallies.waits,
    )  # fmt: skip
    yield families.histogram(
        "query_job_duration_ms", "Time of jobs from start to end, in milliseconds.", (),
        tallies.durations,
    )  # fmt: skip
