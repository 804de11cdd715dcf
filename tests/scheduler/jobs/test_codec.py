import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import CarawayError
from caraway_core.ids import JobId
from caraway_core.protocols.results import ChunkInfo
from caraway_scheduler.jobs import codec
from caraway_scheduler.jobs.model import Job, JobProgress, JobRequest
from caraway_scheduler.queries.storing import StoredAnswer
from tests.scheduler.jobs import making

SCHEMA = pa.schema(
    [
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False, metadata={"unit": "x"}),
        pa.field("tags", pa.list_(pa.struct([("name", pa.string_view())]))),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
    ],
    metadata={"a": "b"},
)
MANIFEST = StoredAnswer(SCHEMA, (ChunkInfo(0, 10, 100, "ab"), ChunkInfo(7, 5, 50, "cd")))
Decoder = Callable[[bytes], object]
DECODERS: tuple[Decoder, ...] = (
    codec.decode_job,
    codec.decode_manifest,
    codec.decode_progress,
    codec.decode_promise,
)
STORED: dict[Decoder, bytes] = {
    codec.decode_job: codec.encode_job(making.job()),
    codec.decode_manifest: codec.encode_manifest(MANIFEST),
    codec.decode_progress: codec.encode_progress(1, JobProgress()),
    codec.decode_promise: codec.encode_promise(JobId("A"), JobRequest("SELECT 1")),
}


@given(making.JOBS)
def test_a_job_round_trips(job: Job) -> None:
    assert codec.decode_job(codec.encode_job(job)) == job


@given(making.CHUNKS)
def test_a_manifest_round_trips(chunks: tuple[ChunkInfo, ...]) -> None:
    found = codec.decode_manifest(codec.encode_manifest(StoredAnswer(SCHEMA, chunks)))
    assert found.chunks == chunks
    assert found.schema.equals(SCHEMA, check_metadata=True)


@given(making.COUNTS, making.PROGRESS)
def test_progress_round_trips_with_its_epoch(epoch: int, progress: JobProgress) -> None:
    assert codec.decode_progress(codec.encode_progress(epoch, progress)) == (epoch, progress)


@given(making.REQUESTS)
def test_an_idempotency_record_round_trips(request: JobRequest) -> None:
    found = codec.decode_promise(codec.encode_promise(JobId("A-1"), request))
    assert found == (JobId("A-1"), codec.digest(request))


def test_numbers_outside_json_round_trip() -> None:
    job = making.job(request=JobRequest("SELECT $1", {"1": [float("inf"), float("nan")]}))
    found = codec.decode_job(codec.encode_job(job)).request.parameters["1"]
    assert found[0] == float("inf")
    assert found[1] != found[1]


def test_requests_are_alike_whatever_the_order_of_their_parameters() -> None:
    one = JobRequest("SELECT $a, $b", {"a": 1, "b": 2})
    assert codec.digest(one) == codec.digest(replace(one, parameters={"b": 2, "a": 1}))


@pytest.mark.parametrize(
    "change",
    [
        {"sql": "SELECT 2"},
        {"parameters": {"a": "1"}},
        {"parameters": {"a": True}},
        {"timeout_s": 5.0},
        {"maximum_size": 5},
    ],
    ids=str,
)
def test_another_request_has_another_digest(change: dict[str, Any]) -> None:
    one = JobRequest("SELECT 1", {"a": 1})
    assert codec.digest(one) != codec.digest(replace(one, **change))


def test_ten_thousand_chunks_take_little_room() -> None:
    chunks = tuple(ChunkInfo(number, 10_000, 4_194_304, "f" * 64) for number in range(10_000))
    stored = codec.encode_manifest(StoredAnswer(SCHEMA, chunks))
    assert len(stored) < 1_000_000
    assert codec.decode_manifest(stored).chunks == chunks


@pytest.mark.parametrize("decode", DECODERS, ids=lambda each: each.__name__)
def test_a_newer_format_is_rejected(decode: Decoder) -> None:
    newer = json.dumps({**json.loads(STORED[decode]), "format": 2}).encode()
    with pytest.raises(CarawayError, match=r"has format 2, .* reads formats up to 1"):
        decode(newer)


@pytest.mark.parametrize("decode", DECODERS, ids=lambda each: each.__name__)
def test_unknown_fields_are_ignored(decode: Decoder) -> None:
    more = json.dumps({**json.loads(STORED[decode]), "colour": "red"}).encode()
    assert decode(more) == decode(STORED[decode])


@pytest.mark.parametrize("decode", DECODERS, ids=lambda each: each.__name__)
@given(stored=st.binary(max_size=30))
def test_damaged_entries_give_a_clear_error(decode: Decoder, stored: bytes) -> None:
    with pytest.raises(CarawayError, match="cannot be read"):
        decode(stored)


@pytest.mark.parametrize("decode", DECODERS, ids=lambda each: each.__name__)
def test_a_missing_field_is_a_clear_error(decode: Decoder) -> None:
    whole = json.loads(STORED[decode])
    for name in whole:
        part = {key: value for key, value in whole.items() if key != name}
        if decode is codec.decode_progress and name not in ("format", "epoch"):
            continue  # These fields have defaults.
        with pytest.raises(CarawayError, match="cannot be read"):
            decode(json.dumps(part).encode())


def test_an_error_does_not_show_what_was_stored() -> None:
    stored = codec.encode_job(making.job(request=JobRequest("SELECT 'sesame'")))
    with pytest.raises(CarawayError) as raised:
        codec.decode_job(stored[:-1])
    assert "sesame" not in raised.value.message
