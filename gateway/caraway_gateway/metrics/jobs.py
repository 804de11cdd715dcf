"""Metrics of asynchronous queries; `scheduler_job_queue_depth` is an emulated name."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_scheduler.jobs.opening import Jobs
from caraway_serving.metric_families import Families, Table, counter, gauge, histogram

_JOBS: Table[Jobs] = (
    gauge("query_jobs", "Asynchronous queries in the state store, of all schedulers.",
          "status", lambda of: of.replica.counts),
    gauge("scheduler_job_queue_depth", "Jobs in the queue of this scheduler.",
          "", lambda of: of.scheduler.queued),
    gauge("query_jobs_running", "Jobs that run here.", "", lambda of: of.scheduler.running),
    counter("query_jobs_submitted", "Jobs submitted here.", "", lambda of: of.tallies.submitted),
    counter("query_jobs_taken_over", "Jobs taken over from lost schedulers.",
            "", lambda of: of.tallies.taken_over),
    counter("query_jobs_finished", "Jobs that ended here.",
            "status", lambda of: of.tallies.finished),
    counter("query_jobs_stored_bytes", "Stored bytes of answers.",
            "", lambda of: of.tallies.stored_bytes),
    counter("query_jobs_stored_rows", "Stored rows of answers.",
            "", lambda of: of.tallies.stored_rows),
    histogram("query_job_wait_ms", "Time from submission to start of jobs, in milliseconds.",
              "", lambda of: of.tallies.waits),
    histogram("query_job_duration_ms", "Time from start to end of jobs, in milliseconds.",
              "", lambda of: of.tallies.durations),
)  # fmt: skip


def collect(jobs: Jobs, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    return families.families_of(_JOBS, jobs)
