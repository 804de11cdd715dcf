"""Jobs in the state store: which key holds what, and how each is written safely.

jobs/PRINCIPAL/JOB            the job
job-manifests/JOB.EPOCH       what its answer consists of
job-progress/JOB              how far it is; soon gone
job-requests/PRINCIPAL/HASH   which job an Idempotency-Key stands for
"""

import hashlib
import re
from collections.abc import Sequence
from urllib.parse import quote

from caraway_core.errors import CarawayError, JobConflictError
from caraway_core.ids import JobId, PrincipalId
from caraway_core.protocols.state import StateEntry, StateStore
from caraway_scheduler.jobs import codec
from caraway_scheduler.jobs.model import Job, JobProgress, JobRequest, StoredJob
from caraway_scheduler.queries.storing import StoredAnswer

JOBS = "jobs/"
PROGRESS_TTL_S = 30.0
_MANIFESTS = "job-manifests/"
_PROGRESS = "job-progress/"
_REQUESTS = "job-requests/"
_JOB_ID = re.compile(r"[0-9A-F-]{1,64}")
_TRIES = 8


def is_job_id(text: str) -> bool:
    """Whether a text, as from a URL, can be the id of a job at all."""
    return _JOB_ID.fullmatch(text) is not None


def job_key(principal: PrincipalId, job_id: JobId) -> str:
    """Return where a job lies.

    Raises:
        CarawayError: the id is none that Caraway gives out.
    """
    _check(job_id)
    return _of(JOBS, principal) + job_id


def job_id_in(key: str) -> JobId:
    """Return whose entry a key under `JOBS` is."""
    return JobId(key.rpartition("/")[2])


class JobRecords:
    """Reads and writes jobs; every write of a job names the revision that it was read at.

    Each method raises StateAwayError while the store does not answer, and CarawayError when what
    is stored cannot be read, as when a newer version wrote it.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store

    async def create(self, job: Job) -> StoredJob:
        """Write a new job; one that is already there under its id is returned as it stands.

        Two submissions with one Idempotency-Key make the same job, and one of them is first.
        """
        key = job_key(job.principal, job.job_id)
        for _ in range(_TRIES):
            revision = await self._store.compare_and_set(key, codec.encode_job(job), expected=None)
            if revision is not None:
                return StoredJob(job, revision)
            entry = await self._store.get(key)
            if entry is not None:
                return _held(entry)
        raise _restless(key)

    async def get(self, principal: PrincipalId, job_id: JobId) -> StoredJob | None:
        """Return a job of the principal; an id that cannot be one has none."""
        if not is_job_id(job_id):
            return None
        entry = await self._store.get(job_key(principal, job_id))
        return _held(entry) if entry else None

    async def replace(
        self, held: StoredJob, job: Job, ttl_s: float | None = None
    ) -> StoredJob | None:
        """Write the job in place of the one that was read; None: somebody else was first."""
        key = job_key(job.principal, job.job_id)
        if key != job_key(held.job.principal, held.job.job_id):
            raise ValueError(f"job '{job.job_id}' cannot take the place of '{held.job.job_id}'")
        revision = await self._store.compare_and_set(
            key, codec.encode_job(job), expected=held.revision, ttl_s=ttl_s
        )
        return None if revision is None else StoredJob(job, revision)

    async def delete(self, held: StoredJob) -> bool:
        """Remove a job and what belongs to it, but not its stored answer.

        Returns False, and removes nothing, when somebody changed the job meanwhile.
        """
        job = held.job
        key = job_key(job.principal, job.job_id)
        if await self._store.compare_and_set(key, None, expected=held.revision) is None:
            return False
        # After the job: what a crash leaves here expires by itself.
        await self._remove(_MANIFESTS + job.result_key)
        await self._remove(_PROGRESS + job.job_id)
        return True

    async def of(self, principal: PrincipalId) -> Sequence[StoredJob]:
        """Return every job of the principal, the newest first."""
        found = [_held(entry) for entry in await self._store.scan(_of(JOBS, principal))]
        found.sort(key=lambda held: (held.job.created_at, held.job.job_id), reverse=True)
        return found

    async def everything(self) -> Sequence[StoredJob]:
        """Return the jobs of all principals.

        It is all of them or an error: whoever deletes what no job needs relies on that.
        """
        return [_held(entry) for entry in await self._store.scan(JOBS)]

    async def remember_request(
        self, principal: PrincipalId, key: str, request: JobRequest, job_id: JobId, ttl_s: float
    ) -> JobId:
        """Return the job that an Idempotency-Key stands for: the first one that came with it.

        That job may be missing, when the process died before it could create it; create it then.

        Raises:
            JobConflictError: the first one asked for something else.
        """
        _check(job_id)
        where = _of(_REQUESTS, principal) + hashlib.sha256(_utf8(key)).hexdigest()
        promise = codec.encode_promise(job_id, request)
        for _ in range(_TRIES):
            if await self._store.compare_and_set(where, promise, expected=None, ttl_s=ttl_s):
                return job_id
            entry = await self._store.get(where)
            if entry is None:
                continue  # It expired in this moment.
            first, asked = codec.decode_promise(entry.value)
            if asked != codec.digest(request):
                raise JobConflictError(
                    f"this Idempotency-Key already stands for query '{first}', which asked for "
                    "something else; send the request as it was the first time, or another "
                    "Idempotency-Key"
                )
            return first
        raise _restless(where)

    async def write_manifest(self, job: Job, manifest: StoredAnswer, ttl_s: float) -> None:
        """Store what the answer of this epoch of the job consists of."""
        _check(job.job_id)
        await self._write(_MANIFESTS + job.result_key, codec.encode_manifest(manifest), ttl_s)

    async def manifest(self, job: Job) -> StoredAnswer | None:
        _check(job.job_id)
        entry = await self._store.get(_MANIFESTS + job.result_key)
        return codec.decode_manifest(entry.value) if entry else None

    async def write_progress(self, job: Job, progress: JobProgress) -> None:
        """Say how far the job is, unless a later epoch of it has said so already."""
        _check(job.job_id)
        key = _PROGRESS + job.job_id
        standing = await self._store.get(key)
        if standing and codec.decode_progress(standing.value)[0] > job.epoch:
            return
        await self._store.compare_and_set(
            key,
            codec.encode_progress(job.epoch, progress),
            # Whoever writes at the same moment knows as much; the next word comes soon.
            expected=standing.revision if standing else None,
            ttl_s=PROGRESS_TTL_S,
        )

    async def progress(self, job: Job) -> JobProgress | None:
        """Return how far this epoch of the job is, as far as that was said lately."""
        _check(job.job_id)
        entry = await self._store.get(_PROGRESS + job.job_id)
        if entry is None:
            return None
        epoch, progress = codec.decode_progress(entry.value)
        return progress if epoch == job.epoch else None

    async def _write(self, key: str, value: bytes, ttl_s: float) -> None:
        revision: int | None = None
        for _ in range(_TRIES):
            if await self._store.compare_and_set(key, value, expected=revision, ttl_s=ttl_s):
                return
            standing = await self._store.get(key)
            revision = standing.revision if standing else None
        raise _restless(key)

    async def _remove(self, key: str) -> None:
        entry = await self._store.get(key)
        if entry is not None:
            await self._store.compare_and_set(key, None, expected=entry.revision)


def _of(prefix: str, principal: PrincipalId) -> str:
    # Quoted: no principal's keys may lie under those of another.
    return f"{prefix}{quote(_utf8(principal), safe='')}/"


def _utf8(text: str) -> bytes:
    # What comes in headers may hold halves of surrogate pairs, which have no UTF-8.
    return text.encode(errors="surrogatepass")


def _check(job_id: JobId) -> None:
    if not is_job_id(job_id):
        raise CarawayError("the id of a query consists of the digits 0 to 9, A to F, and '-'")


def _held(entry: StateEntry) -> StoredJob:
    return StoredJob(codec.decode_job(entry.value), entry.revision)


def _restless(key: str) -> CarawayError:
    return CarawayError(f"state store: '{key}' changed {_TRIES} times while it was written")
