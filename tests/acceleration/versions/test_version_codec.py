"""Versions in the state store: reading returns the written version, and damage is a clear error."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_acceleration.versions import version_codec as codec
from caraway_acceleration.versions.version import DatasetVersion, Superseded, VersionPart
from caraway_core.changes import LogEntry
from caraway_core.errors import CarawayError
from caraway_core.partitions.keys import BucketKey, ByColumn, ByExpression, PartitionBy, Term
from caraway_core.protocols.results import ChunkInfo
from tests.acceleration.versions.written_versions import (
    CHUNKS,
    SCHEMA,
    TERMS,
    TEXTS,
    VERSIONS,
)

PART = VersionPart("t.1", SCHEMA, (ChunkInfo(0, 10, 100, "ab"), ChunkInfo(1, 5, 50, "cd", "[1]")))
VERSION = DatasetVersion(
    7, (PART,), "/data", datetime(2026, 1, 1, tzinfo=UTC), "SELECT 1", "origin",
    definition="v2-origin",
    partition_by=PartitionBy((BucketKey(4, "id"), ByColumn("kind", "k"), ByExpression("id % 2"))),
    log=(LogEntry(ChunkInfo(0, 1, 10, "ef", key="t.log"), 5, ("r1",)),),
    superseded=(Superseded("t.0", datetime(2025, 1, 1, tzinfo=UTC)),),
)  # fmt: skip
Decode = Callable[[bytes], object]


def decoded(stored: bytes) -> DatasetVersion:
    return codec.decode(stored, {PART.key: PART})


READERS: tuple[Decode, ...] = (decoded, codec.part_keys, codec.location)


@settings(max_examples=20, derandomize=True)
@given(VERSIONS)
def test_version_comes_back_as_it_was(version: DatasetVersion) -> None:
    stored = codec.encode(version)
    assert codec.part_keys(stored) == tuple(part.key for part in version.parts)
    assert codec.location(stored) == version.location
    assert codec.decode(stored, {part.key: part for part in version.parts}) == version


@settings(max_examples=40, derandomize=True)
@given(TEXTS, CHUNKS)
def test_part_comes_back_with_its_schema_and_metadata(
    key: str, chunks: tuple[ChunkInfo, ...]
) -> None:
    found = codec.decode_part(key, codec.encode_part(VersionPart(key, SCHEMA, chunks)))
    assert (found.key, found.chunks) == (key, chunks)
    assert found.schema.equals(SCHEMA, check_metadata=True)


def test_plain_chunks_take_four_fields_as_they_always_did() -> None:
    document = json.loads(codec.encode_part(PART))
    assert document["chunks"] == [[0, 10, 100, "ab"], [1, 5, 50, "cd", "[1]", "", ""]]


def test_version_written_before_pages_of_requests_is_read() -> None:
    document = json.loads(codec.encode(replace(VERSION, request_pages=3)))
    del document["request_pages"]
    for number in (1, 2, 3):
        found = decoded(json.dumps({**document, "format": number}).encode())
        assert found == VERSION and found.request_pages == 0


def test_fields_that_are_not_known_are_left_out() -> None:
    document = {**json.loads(codec.encode(VERSION)), "colour": "red"}
    assert decoded(json.dumps(document).encode()) == VERSION


@pytest.mark.parametrize("read", READERS, ids=lambda each: each.__name__)
def test_newer_format_is_not_guessed_at(read: Decode) -> None:
    document = {**json.loads(codec.encode(VERSION)), "format": 4}
    with pytest.raises(CarawayError, match="newer release"):
        read(json.dumps(document).encode())


@pytest.mark.parametrize("read", READERS, ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    "stored",
    [b"", b"{", b"[]", b"null", b"3", b'"x"', b"{}", b'{"format":"3"}', b'{"format":null}',
     b'{"format":3}', b'\xff\xfe', b'{"format":3,"parts":5}', b'{"format":3,"location":1}'],
)  # fmt: skip
def test_what_is_no_version_is_damage(read: Decode, stored: bytes) -> None:
    if read is codec.location and b"location" in stored:
        assert codec.location(stored) == "1"
        return
    with pytest.raises(CarawayError, match="damaged"):
        read(stored)


@pytest.mark.parametrize("field", json.loads(codec.encode(VERSION)))
@pytest.mark.parametrize("value", [..., None, 5, "x", [5], [["bucket", "a", "b"]], [[]], {}])
def test_any_field_that_is_missing_or_odd_is_damage_or_read(field: str, value: Any) -> None:
    document = json.loads(codec.encode(VERSION))
    document[field] = value
    if value is ...:
        del document[field]
    for read in READERS:
        try:
            read(json.dumps(document).encode())
        except CarawayError as exc:
            assert "damaged" in exc.message or "newer" in exc.message


@settings(max_examples=60, derandomize=True)
@given(st.data())
def test_changed_bytes_are_a_part_or_damage(data: st.DataObject) -> None:
    stored = bytearray(codec.encode_part(PART))
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] = data.draw(st.integers(0, 255))
    try:
        codec.decode_part("k", bytes(stored[: data.draw(st.sampled_from([at, len(stored)]))]))
    except CarawayError as exc:
        assert "damaged" in exc.message


@settings(max_examples=60, derandomize=True)
@given(st.data())
def test_schema_whose_bytes_are_cut_or_changed_is_a_schema_or_damage(data: st.DataObject) -> None:
    raw = bytearray(SCHEMA.serialize().to_pybytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    cut = data.draw(st.booleans())
    raw[at] ^= data.draw(st.integers(1, 255))
    broken = bytes(raw[:at] if cut else raw)
    text = base64.b64encode(broken).decode()
    try:
        codec.decode_part("k", json.dumps({"schema": text, "chunks": []}).encode())
    except CarawayError as exc:
        assert "damaged" in exc.message


def test_version_without_one_of_its_parts_is_damage() -> None:
    with pytest.raises(CarawayError, match="damaged"):
        codec.decode(codec.encode(VERSION), {})


@settings(max_examples=40, derandomize=True)
@given(TERMS)
def test_terms_come_back_as_they_were(term: Term) -> None:
    assert codec.read_term(json.loads(json.dumps(codec.term(term)))) == term
