"""Encodes jobs and their related records as compact JSON with a format number.

Readers ignore unknown fields, so that fields can be added without a new format. A change that older
processes would misread increments FORMAT.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, TypeVar

import pyarrow as pa

from caraway_core.errors import CarawayError
from caraway_core.ids import JobId, PrincipalId
from caraway_core.protocols.results import ChunkInfo
from caraway_scheduler.jobs.model import Job, JobError, JobProgress, JobRequest, Totals
from caraway_scheduler.queries.storing import StoredAnswer

FORMAT = 1

T = TypeVar("T")


def encode_job(job: Job) -> bytes:
    """Encode a job."""
    return _bytes(
        {
            "id": job.job_id,
            "principal": job.principal,
            "read_only": job.is_read_only,
            "request": _request(job.request),
            "status": job.status,
            "owner": job.owner,
            "epoch": job.epoch,
            "created": job.created_at.isoformat(),
            "started": _text(job.started_at),
            "completed": _text(job.completed_at),
            "expires": _text(job.expires_at),
            "attempts": job.attempts,
            "writes": job.writes,
            "error": asdict(job.error) if job.error else None,
            "totals": asdict(job.totals) if job.totals else None,
        }
    )


def decode_job(stored: bytes) -> Job:
    """Decode a job.

    Raises:
        CarawayError: a newer version stored it, or it is damaged.
    """
    return _decoded("job", stored, _job)


def encode_manifest(manifest: StoredAnswer) -> bytes:
    """Encode the manifest of a job's answer."""
    # Stored as columns rather than one object per chunk: field names appear once, not thousands of
    # times.
    return _bytes(
        {
            "schema": base64.b64encode(manifest.schema.serialize()).decode(),
            "index": [chunk.index for chunk in manifest.chunks],
            "rows": [chunk.row_count for chunk in manifest.chunks],
            "sizes": [chunk.size_bytes for chunk in manifest.chunks],
            "sha256": [chunk.checksum for chunk in manifest.chunks],
        }
    )


def decode_manifest(stored: bytes) -> StoredAnswer:
    """Decode the manifest of a job's answer.

    Raises:
        CarawayError: a newer version stored it, or it is damaged.
    """
    return _decoded("manifest of a job", stored, _manifest)


def encode_progress(epoch: int, progress: JobProgress) -> bytes:
    """Encode the progress of a job in one epoch."""
    return _bytes({"epoch": epoch, **asdict(progress)})


def decode_progress(stored: bytes) -> tuple[int, JobProgress]:
    """Decode the epoch and the progress of a job.

    Raises:
        CarawayError: a newer version stored it, or it is damaged.
    """
    return _decoded("progress of a job", stored, _progress)


def encode_promise(job_id: JobId, request: JobRequest) -> bytes:
    """Encode the record of an Idempotency-Key: the job id and a digest of the request."""
    return _bytes({"id": job_id, "request": digest(request)})


def decode_promise(stored: bytes) -> tuple[JobId, str]:
    """Decode the record of an Idempotency-Key: the job id and the digest of the request.

    Raises:
        CarawayError: a newer version stored it, or it is damaged.
    """
    return _decoded(
        "Idempotency-Key", stored, lambda found: (JobId(found["id"]), str(found["request"]))
    )


def digest(request: JobRequest) -> str:
    """Return a hash that is equal for equal requests."""
    canonical = json.dumps(_request(request), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _request(request: JobRequest) -> Mapping[str, Any]:
    return {
        "sql": request.sql,
        "parameters": dict(request.parameters),
        "timeout": request.timeout_s,
        "maximum_size": request.maximum_size,
    }


def _job(found: Mapping[str, Any]) -> Job:
    request = found["request"]
    return Job(
        job_id=JobId(found["id"]),
        principal=PrincipalId(found["principal"]),
        is_read_only=found["read_only"],
        request=JobRequest(
            request["sql"], request["parameters"], request["timeout"], request["maximum_size"]
        ),
        status=found["status"],
        owner=found["owner"],
        epoch=found["epoch"],
        created_at=datetime.fromisoformat(found["created"]),
        started_at=_time(found["started"]),
        completed_at=_time(found["completed"]),
        expires_at=_time(found["expires"]),
        attempts=found["attempts"],
        writes=found["writes"],
        error=_known(JobError, found["error"]) if found["error"] else None,
        totals=_known(Totals, found["totals"]) if found["totals"] else None,
    )


def _manifest(found: Mapping[str, Any]) -> StoredAnswer:
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["schema"], validate=True)))
    columns = (found["index"], found["rows"], found["sizes"], found["sha256"])
    return StoredAnswer(schema, tuple(ChunkInfo(*row) for row in zip(*columns, strict=True)))


def _progress(found: Mapping[str, Any]) -> tuple[int, JobProgress]:
    return int(found["epoch"]), _known(JobProgress, found)


def _known(class_: Callable[..., T], found: Mapping[str, object]) -> T:
    names = {field.name for field in fields(class_)}  # type: ignore[arg-type]  # a dataclass
    return class_(**{name: value for name, value in found.items() if name in names})


def _bytes(facts: Mapping[str, Any]) -> bytes:
    # ASCII only: JSON text may contain a lone surrogate, which is not valid UTF-8.
    return json.dumps({"format": FORMAT, **facts}, separators=(",", ":")).encode()


def _decoded(what: str, stored: bytes, read: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        found = json.loads(stored)
        format_ = int(found["format"])
        if format_ <= FORMAT:
            return read(found)
    except (ValueError, KeyError, TypeError, AttributeError, OSError, pa.ArrowException) as exc:
        # The content is omitted because only its owner may see it.
        raise CarawayError(
            f"state store: a stored {what} cannot be read ({type(exc).__name__}): something "
            "other than Caraway wrote it, or it is damaged"
        ) from exc
    raise CarawayError(
        f"state store: a stored {what} has format {format_}, and this version of Caraway reads "
        f"formats up to {FORMAT}: a newer version wrote it; run that version on every scheduler"
    )


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
