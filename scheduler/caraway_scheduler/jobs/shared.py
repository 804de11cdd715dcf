"""The jobs of all schedulers, as one of them reads and writes them."""

from dataclasses import dataclass

from caraway_scheduler.jobs.committing import Committer
from caraway_scheduler.jobs.records import JobRecords
from caraway_scheduler.jobs.replica import Replica


@dataclass(frozen=True, slots=True)
class SharedJobs:
    """The records in the state store, the copy of them here, and the order of their writes.

    Records stay for `kept_s` after their jobs have ended.
    """

    records: JobRecords
    replica: Replica
    committer: Committer
    kept_s: float
