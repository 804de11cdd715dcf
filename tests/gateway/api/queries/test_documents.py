"""Jobs on the wire: which fields are there, and rows inside a document."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.protocols.results import ChunkInfo
from caraway_gateway.api.queries import documents
from caraway_gateway.api.queries.documents import ChunkJson
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import JobError, JobProgress, JobStatus
from caraway_scheduler.queries.storing import StoredAnswer
from tests.scheduler.jobs import making

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("s", pa.string())])
CHUNKS = tuple(ChunkInfo(index, rows, 10, "") for index, rows in enumerate((3, 0, 5)))
MANIFEST = StoredAnswer(SCHEMA, CHUNKS)


def test_every_status_can_be_filtered_by_its_own_name() -> None:
    assert set(documents.FILTERS.values()) == set(states.ALLOWED)
    for status in states.ALLOWED:
        assert documents.FILTERS[status.lower()] == status


def test_submitted_job_says_where_to_look() -> None:
    document = documents.submitted(making.job("A-1"))
    assert document == {
        "query_id": "A-1",
        "status": "PENDING",
        "status_url": "/v1/queries/A-1/status",
        "results_url": "/v1/queries/A-1/results",
    }


@pytest.mark.parametrize("status", list(states.ALLOWED))
def test_progress_is_told_of_running_jobs_and_causes_of_those_that_wait(status: JobStatus) -> None:
    job = making.job("A-1", status=status)
    progress = JobProgress(1, 2, 3, 4, 5, 6, waits_for="the disk is full")
    document = documents.status(job, progress)
    assert ("progress" in document) == (status == "RUNNING")
    assert ("waits_for" in document) == (status in ("PENDING", "RUNNING"))
    if status == "RUNNING":
        assert list(document["progress"].values()) == [1, 2, 3, 4, 5, 6]
    assert documents.status(job, None) == {"query_id": "A-1", "status": status}
    assert "waits_for" not in documents.status(job, replace(progress, waits_for=""))


def test_failed_job_has_its_error_everywhere() -> None:
    job = making.job("A-1", status="FAILED", error=JobError("TIMEOUT", "too late"))
    for document in (
        documents.submitted(job), documents.status(job, None), documents.described(job, None)
    ):  # fmt: skip
        assert document["error"] == {"error_code": "TIMEOUT", "message": "too late"}


def test_description_has_times_in_utc_and_the_columns() -> None:
    there = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    job = making.job("A-1", status="SUCCEEDED", completed_at=there)
    document = documents.described(job, MANIFEST)
    assert document["completed_at"] == datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    assert "started_at" not in document and "expires_at" not in document
    manifest = document["manifest"]
    assert (manifest["total_row_count"], manifest["total_chunk_count"]) == (8, 3)
    assert manifest["schema"]["column_count"] == 2
    assert [(each["name"], each["nullable"]) for each in manifest["schema"]["columns"]] == [
        ("n", False),
        ("s", True),
    ]


def test_list_shows_each_job_once_with_the_begin_of_its_text() -> None:
    jobs = [making.job(f"A-{number}") for number in range(3)]
    document = documents.listed(jobs)
    assert document["total_count"] == 3
    assert [each["query_id"] for each in document["queries"]] == ["A-0", "A-1", "A-2"]
    assert documents.listed([]) == {"queries": [], "total_count": 0}


@pytest.mark.parametrize(
    ("index", "expected"),
    [(0, (0, 3, 1)), (1, (3, 0, 2)), (2, (3, 5, None)), (3, (8, 0, None))],
)
def test_chunks_lead_from_one_to_the_next(
    index: int, expected: tuple[int, int, int | None]
) -> None:
    document = documents.chunk(making.job("A-1"), MANIFEST, index)
    offset, count, following = expected
    assert (document["row_offset"], document["row_count"]) == (offset, count)
    assert document.get("next_chunk_index") == following
    assert ("next_chunk_url" in document) == (following is not None)
    if following is not None:
        assert document["next_chunk_url"].endswith(f"/A-1/results/chunks/{following}")


ROWS = st.lists(
    st.fixed_dictionaries(
        {"n": st.integers(-(2**53), 2**53), "s": st.none() | st.text(max_size=8)}
    ),
    max_size=6,
)


@settings(max_examples=30, derandomize=True)
@given(
    st.lists(ROWS, max_size=3),
    st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=5), min_size=1),
)
def test_rows_in_a_document_are_json_whatever_they_hold(
    batches: list[list[dict[str, Any]]], within: dict[str, str] | None
) -> None:
    chunk = documents.chunk(making.job("A-1"), MANIFEST, 0)
    encoder = ChunkJson(chunk, within)
    parts = [encoder.encode_start(SCHEMA)]
    parts += [encoder.encode(pa.RecordBatch.from_pylist(rows, SCHEMA)) for rows in batches]
    parts.append(encoder.end(0))
    document = json.loads(b"".join(parts))
    rows = [row for batch in batches for row in batch]
    inner = {**chunk, "data_array": rows}
    if within is None:
        assert document == inner
    else:
        assert document == {**within, "result": inner}
