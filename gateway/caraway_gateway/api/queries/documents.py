"""Builds the JSON documents of jobs, and streams rows inside such a document."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from caraway_scheduler.jobs.model import Job, JobProgress, JobStatus
from caraway_scheduler.queries.active import preview
from caraway_scheduler.queries.storing import StoredAnswer
from caraway_serving import formats
from caraway_serving.formats.datatypes import display

Document = dict[str, Any]

FILTERS: Mapping[str, JobStatus] = {
    "queued": "PENDING",
    "pending": "PENDING",
    "running": "RUNNING",
    "completed": "SUCCEEDED",
    "succeeded": "SUCCEEDED",
    "failed": "FAILED",
    "cancelled": "CANCELLED",
    "closed": "CLOSED",
}
"""The values by which the list can be filtered, in lower case."""


def submitted(job: Job) -> Document:
    """Return the document of a submitted job."""
    path = f"/v1/queries/{job.job_id}"
    return {**_state(job), "status_url": f"{path}/status", "results_url": f"{path}/results"}


def status(job: Job, progress: JobProgress | None) -> Document:
    """Return the status document of a job."""
    document = _state(job)
    if progress is not None and progress.waits_for and not job.is_over:
        document["waits_for"] = progress.waits_for
    if progress is not None and job.status == "RUNNING":
        document["progress"] = {
            "stages_done": progress.stages_done,
            "stages_total": progress.stages_total,
            "tasks_done": progress.tasks_done,
            "tasks_total": progress.tasks_total,
            "rows": progress.rows,
            "bytes": progress.size_bytes,
        }
    return document


def described(job: Job, manifest: StoredAnswer | None) -> Document:
    """Return the document of a job, without its rows."""
    document = _state(job)
    if manifest is not None:
        document["manifest"] = _manifest(manifest)
    for name in ("created_at", "started_at", "completed_at", "expires_at"):
        moment = getattr(job, name)
        if moment is not None:
            document[name] = _time(moment)
    return document


def listed(jobs: Sequence[Job]) -> Document:
    """Return the document that lists jobs."""
    entries = [
        {
            "query_id": job.job_id,
            "status": job.status,
            "sql_preview": preview(job.request.sql),
            "created_at": _time(job.created_at),
        }
        for job in jobs
    ]
    return {"queries": entries, "total_count": len(entries)}


def chunk(job: Job, manifest: StoredAnswer, index: int) -> Document:
    """Return the document of a chunk, without its rows.

    The last chunk has no `next_chunk_index`, because clients test whether it is present.
    """
    before, at = manifest.chunks[:index], manifest.chunks[index : index + 1]
    document: Document = {
        "chunk_index": index,
        "row_offset": sum(each.row_count for each in before),
        "row_count": sum(each.row_count for each in at),
    }
    following = index + 1
    if following < len(manifest.chunks):
        document["next_chunk_index"] = following
        document["next_chunk_url"] = f"/v1/queries/{job.job_id}/results/chunks/{following}"
    return document


class ChunkJson:
    """Encodes the rows of a chunk into its document, optionally nested in another document."""

    def __init__(self, chunk: Document, within: Document | None = None) -> None:
        self._rows = formats.make("json")
        self._before = _opened(chunk, "data_array")
        self._after = b"}"
        if within is not None:
            self._before = _opened(within, "result") + self._before
            self._after = b"}}"

    def encode_start(self, schema: pa.Schema) -> bytes:
        """Return the document up to the rows."""
        return self._before + self._rows.encode_start(schema)

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Encode a batch of rows."""
        return self._rows.encode(batch)

    def end(self, elapsed_ms: int) -> bytes:
        """Return the end of the document."""
        return self._rows.end(elapsed_ms) + self._after


def _opened(document: Document, field: str) -> bytes:
    """Return the text of a document up to the value of an additional last field."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return f'{text[:-1]},"{field}":'.encode()


def _state(job: Job) -> Document:
    document: Document = {"query_id": job.job_id, "status": job.status}
    if job.error is not None:
        document["error"] = {"error_code": job.error.code, "message": job.error.message}
    return document


def _manifest(manifest: StoredAnswer) -> Document:
    columns = [
        {
            "name": field.name,
            "type_name": display(field.type),
            "nullable": field.nullable,
            "position": position,
        }
        for position, field in enumerate(manifest.schema)
    ]
    return {
        "format": "ARROW_IPC",
        "schema": {"column_count": len(columns), "columns": columns},
        "total_row_count": sum(each.row_count for each in manifest.chunks),
        "total_chunk_count": len(manifest.chunks),
    }


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
