"""Builds jobs for tests, with typical values or chosen by hypothesis."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from caraway_core.ids import PUBLIC, JobId, PrincipalId
from caraway_core.protocols.results import ChunkInfo
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import Job, JobError, JobProgress, JobRequest, Totals

START = datetime(2026, 1, 1, tzinfo=UTC)


def job(job_id: str = "A-1", principal: str = PUBLIC, **changes: Any) -> Job:
    """Return a pending job with the given changes."""
    request = JobRequest("SELECT 1")
    new = states.submitted(JobId(job_id), PrincipalId(principal), False, request, "one", START)
    return replace(new, **changes)


COUNTS = st.integers(0, 2**53)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=30)
"""Includes lone surrogates, which the text of a JSON body may contain."""
TIMES = st.datetimes(timezones=st.just(UTC))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
PARAMETERS: st.SearchStrategy[Mapping[str, Any]] = st.dictionaries(TEXTS, VALUES, max_size=3)
REQUESTS = st.builds(
    JobRequest,
    TEXTS,
    PARAMETERS,
    timeout_s=st.none() | st.floats(0, 1e6),
    maximum_size=st.none() | COUNTS,
)
JOBS = st.builds(
    Job,
    job_id=TEXTS.map(JobId),
    principal=TEXTS.map(PrincipalId),
    is_read_only=st.booleans(),
    request=REQUESTS,
    status=st.sampled_from(tuple(states.ALLOWED)),
    owner=TEXTS,
    epoch=COUNTS,
    created_at=TIMES,
    started_at=st.none() | TIMES,
    completed_at=st.none() | TIMES,
    expires_at=st.none() | TIMES,
    attempts=COUNTS,
    writes=st.booleans(),
    error=st.none() | st.builds(JobError, st.just("INTERNAL"), TEXTS),
    totals=st.none() | st.builds(Totals, COUNTS, COUNTS, COUNTS),
)
CHUNKS = st.lists(st.builds(ChunkInfo, COUNTS, COUNTS, COUNTS, TEXTS), max_size=5).map(tuple)
PROGRESS = st.builds(JobProgress, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
