"""The jobs that each key keeps: their records, which all schedulers hold, and their results."""

from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.errors import CarawayError
from caraway_core.ids import JobId
from caraway_core.protocols.results import ResultStore
from caraway_scheduler.jobs.model import Job
from caraway_scheduler.jobs.records import JobRecords
from caraway_scheduler.jobs.replica import Replica

MOST_STATEMENT_BYTES = 256 * 1024 * 1024
_RECORD_BYTES = 1024


class KeptJobs:
    """Counts the jobs of each key over its replica.

    A key above its limits loses the records of its oldest jobs that have ended; where none has, its
    next job is refused. `results` counts the bytes of answers, which the sweeper limits.
    """

    def __init__(
        self,
        replica: Replica,
        records: JobRecords,
        results: ResultStore,
        most: int | None = None,
        most_result_bytes: int | None = None,
    ) -> None:
        limits = QuotaLimits(most_each=most, most_bytes_each=MOST_STATEMENT_BYTES)
        self.jobs: Quota[JobId] = Quota("asynchronous queries", limits, may_go=self._is_over)
        self.results: Quota[JobId] = Quota(
            "results of queries", QuotaLimits(most_bytes_each=most_result_bytes)
        )
        self._replica = replica
        self._records = records
        self._stored = results
        replica.subscribe(lambda held: self._saw(held.job), self._forgot)

    async def make_room(self, job: Job) -> None:
        """Count a job that is about to be written.

        Raises:
            OverloadedError: its key has too many jobs that have not ended.
            CarawayError: the jobs that have to go for it cannot be deleted now.
        """
        gone = self.jobs.add(job.principal, job.job_id, _size(job))
        for job_id in gone:
            stored_job = self._replica.get(job_id)
            if stored_job is None:
                continue
            try:
                await self._records.delete(stored_job)
                await self._stored.delete(stored_job.job.result_key)
            except CarawayError:
                self.jobs.count(stored_job.job.principal, job_id, _size(stored_job.job))
                self.jobs.drop(job.job_id)
                raise

    def not_written(self, job: Job) -> None:
        """Forget a job that could not be written."""
        if self._replica.get(job.job_id) is None:
            self.jobs.drop(job.job_id)

    def _saw(self, job: Job) -> None:
        if job.job_id not in self.jobs:
            self.jobs.count(job.principal, job.job_id, _size(job))
        if job.status == "SUCCEEDED" and job.totals is not None:
            if job.job_id not in self.results:
                self.results.count(job.principal, job.job_id, job.totals.size_bytes)
        else:
            self.results.drop(job.job_id)

    def _forgot(self, job_id: JobId) -> None:
        self.jobs.drop(job_id)
        self.results.drop(job_id)

    def _is_over(self, job_id: JobId) -> bool:
        stored_job = self._replica.get(job_id)
        return stored_job is not None and stored_job.job.is_over


def _size(job: Job) -> int:
    parameters = job.request.parameters
    texts = sum(len(each) for each in parameters.values() if isinstance(each, str | bytes))
    return _RECORD_BYTES + len(job.request.sql) + texts + 32 * len(parameters)
