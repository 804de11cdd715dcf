"""Stores jobs in the state store. Keys:

jobs/PRINCIPAL/JOB            the job
job-manifests/JOB.EPOCH       the manifest of its answer
job-progress/JOB              its progress, with a short TTL
job-requests/PRINCIPAL/HASH   the job of an Idempotency-Key
"""

import hashlib
import re
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
    """Return whether a text, such as a part of a URL, has the form of a job id."""
    return _JOB_ID.fullmatch(text) is not None


def job_key(principal: PrincipalId, job_id: JobId) -> str:
    """Return the key of a job.

    Raises:
        CarawayError: the id is not a valid job id.
    """
    _check(job_id)
    return _of(JOBS, principal) + job_id


def job_id_in(key: str) -> JobId:
    """Return the job id in a key under `JOBS`."""
    return JobId(key.rpartition("/")[2])


class JobRecords:
    """Reads and writes jobs; every write of a job is a compare-and-set.

    Each method raises StateAwayError while the store is away. They raise CarawayError if an entry
    cannot be read, for example because a newer version wrote it.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store

    async def create(self, job: Job) -> StoredJob:
        """Write a new job, or return the one that already exists under its id.

        Two submissions with one Idempotency-Key create the same job, and one of them is first.
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
        """Return a job of the principal, or None; also None for a malformed id."""
        if not is_job_id(job_id):
            return None
        entry = await self._store.get(job_key(principal, job_id))
        return _held(entry) if entry else None

    async def replace(
        self, held: StoredJob, job: Job, ttl_s: float | None = None
    ) -> StoredJob | None:
        """Replace the job that was read; None if another process changed it first."""
        key = job_key(job.principal, job.job_id)
        if key != job_key(held.job.principal, held.job.job_id):
            raise ValueError(f"job '{job.job_id}' cannot take the place of '{held.job.job_id}'")
        revision = await self._store.compare_and_set(
            key, codec.encode_job(job), expected=held.revision, ttl_s=ttl_s
        )
        return None if revision is None else StoredJob(job, revision)

    async def delete(self, held: StoredJob) -> bool:
        """Delete a job and its related records, but not its stored answer.

        Returns False, and deletes nothing, if the job was changed since it was read.
        """
        job = held.job
        key = job_key(job.principal, job.job_id)
        if await self._store.compare_and_set(key, None, expected=held.revision) is None:
            return False
        # Deleted after the job: what remains after a crash expires by itself.
        await self._remove(_MANIFESTS + job.result_key)
        await self._remove(_PROGRESS + job.job_id)
        return True

    async def remember_request(
        self, principal: PrincipalId, key: str, request: JobRequest, job_id: JobId, ttl_s: float
    ) -> JobId:
        """Return the first job that was submitted with an Idempotency-Key.

        That job does not exist if the process died before it created it; the caller then creates
        it.

        Raises:
            JobConflictError: the key was first used for another request.
        """
        _check(job_id)
        where = _of(_REQUESTS, principal) + hashlib.sha256(_utf8(key)).hexdigest()
        promise = codec.encode_promise(job_id, request)
        for _ in range(_TRIES):
            if await self._store.compare_and_set(where, promise, expected=None, ttl_s=ttl_s):
                return job_id
            entry = await self._store.get(where)
            if entry is None:
                continue  # It expired just now.
            first, asked = codec.decode_promise(entry.value)
            if asked != codec.digest(request):
                raise JobConflictError(
                    f"this Idempotency-Key was already used for query '{first}' with a "
                    "different request; repeat the original request, or use another "
                    "Idempotency-Key"
                )
            return first
        raise _restless(where)

    async def write_manifest(self, job: Job, manifest: StoredAnswer, ttl_s: float) -> None:
        """Store the manifest of the answer of this epoch."""
        _check(job.job_id)
        await self._write(_MANIFESTS + job.result_key, codec.encode_manifest(manifest), ttl_s)

    async def manifest(self, job: Job) -> StoredAnswer | None:
        """Return the manifest of the answer of this epoch, or None."""
        _check(job.job_id)
        entry = await self._store.get(_MANIFESTS + job.result_key)
        return codec.decode_manifest(entry.value) if entry else None

    async def write_progress(self, job: Job, progress: JobProgress) -> None:
        """Store the progress of the job, unless a later epoch has stored its own."""
        _check(job.job_id)
        key = _PROGRESS + job.job_id
        standing = await self._store.get(key)
        if standing and codec.decode_progress(standing.value)[0] > job.epoch:
            return
        await self._store.compare_and_set(
            key,
            codec.encode_progress(job.epoch, progress),
            # A concurrent writer knows as much, and the next update follows soon.
            expected=standing.revision if standing else None,
            ttl_s=PROGRESS_TTL_S,
        )

    async def progress(self, job: Job) -> JobProgress | None:
        """Return the recent progress of this epoch of the job, or None."""
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
    # Quoted, so that no principal's keys can lie under those of another.
    return f"{prefix}{quote(_utf8(principal), safe='')}/"


def _utf8(text: str) -> bytes:
    # Header values may contain lone surrogates, which are not valid UTF-8.
    return text.encode(errors="surrogatepass")


def _check(job_id: JobId) -> None:
    if not is_job_id(job_id):
        raise CarawayError("the id of a query consists of the digits 0 to 9, A to F, and '-'")


def _held(entry: StateEntry) -> StoredJob:
    return StoredJob(codec.decode_job(entry.value), entry.revision)


def _restless(key: str) -> CarawayError:
    return CarawayError(f"state store: '{key}' changed {_TRIES} times while it was written")
