"""Metrics of asynchronous queries; `scheduler_job_queue_depth` is an emulated name."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_scheduler.jobs.opening import Jobs
from caraway_serving.metric_families import Families


def collect(jobs: Jobs, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    tallies = jobs.tallies
    yield families.gauges(
        "query_jobs",
        "Asynchronous queries in the state store, of all schedulers.",
        ("status",),
        {(status,): count for status, count in jobs.replica.counts.items()},
    )
    yield families.gauge(
        "scheduler_job_queue_depth", "Jobs in the queue of this scheduler.", jobs.scheduler.queued
    )
    yield families.gauge("query_jobs_running", "Jobs that run here.", jobs.scheduler.running)
    yield families.counter(
        "query_jobs_submitted", "Jobs submitted here.", (), {(): tallies.submitted}
    )
    yield families.counter(
        "query_jobs_taken_over",
        "Jobs taken over from lost schedulers.",
        (),
        {(): tallies.taken_over},
    )
    yield families.counter(
        "query_jobs_finished", "Jobs that ended here.", ("status",), tallies.finished
    )
    yield families.counter(
        "query_jobs_stored_bytes", "Stored bytes of answers.", (), {(): tallies.stored_bytes}
    )
    yield families.counter(
        "query_jobs_stored_rows", "Stored rows of answers.", (), {(): tallies.stored_rows}
    )
    yield families.histogram(
        "query_job_wait_ms", "Time from submission to start of jobs, in milliseconds.", (),
        tallies.waits,
    )  # fmt: skip
    yield families.histogram(
        "query_job_duration_ms", "Time from start to end of jobs, in milliseconds.", (),
        tallies.durations,
    )  # fmt: skip
