"""Encodes versions of accelerated datasets, and their parts, for the state store.

The releases before and after read them, too: fields, and items of lists, are only added at the end,
and readers ignore those that they do not know. Anything else increments the format one release
after readers know it.
"""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from caraway_acceleration.versions.version import DatasetVersion, Superseded, VersionPart
from caraway_core.changes import LogEntry
from caraway_core.errors import CarawayError
from caraway_core.partitions.keys import BucketKey, ByColumn, ByExpression, PartitionBy, Term
from caraway_core.protocols.results import ChunkInfo

_FORMAT = 3
_CHUNK_FIELDS = 7
_DAMAGE = (ValueError, LookupError, TypeError, OSError, pa.ArrowException)
"""What damaged bytes raise; Arrow raises OSError for a schema whose bytes end too early."""


def encode(version: DatasetVersion) -> bytes:
    """Encode a version. It refers to its parts by key; `encode_part` encodes them."""
    document = {
        "format": _FORMAT,
        "number": version.number,
        "parts": [part.key for part in version.parts],
        "location": version.location,
        "made_at": version.made_at.isoformat(),
        "sql": version.sql,
        "origin": version.origin,
        "superseded": [[each.key, each.since.isoformat()] for each in version.superseded],
        "cut": [term(each) for each in version.partition_by.terms],
        "log": [_entry(each) for each in version.log],
        "position": version.position,
        "live_rows": version.live_rows,
        "requests": list(version.requests),
        "pending": version.pending,
        "request_pages": version.request_pages,
        "definition": version.definition,
        "primary_key": list(version.primary_key),
    }
    return _text(document)


def part_keys(stored: bytes) -> tuple[str, ...]:
    """Return the keys of the parts of an encoded version.

    Raises:
        CarawayError: the version cannot be read.
    """
    try:
        return tuple(_read(stored)["parts"])
    except _DAMAGE as exc:
        raise _damaged(exc) from exc


def location(stored: bytes) -> str:
    """Return the location of an encoded version.

    Raises:
        CarawayError: the version cannot be read.
    """
    try:
        return str(_read(stored)["location"])
    except _DAMAGE as exc:
        raise _damaged(exc) from exc


def decode(stored: bytes, parts: Mapping[str, VersionPart]) -> DatasetVersion:
    """Decode a version with these parts.

    Raises:
        CarawayError: the version cannot be read.
    """
    document = _read(stored)
    try:
        return DatasetVersion(
            document["number"],
            tuple(parts[key] for key in document["parts"]),
            document["location"],
            datetime.fromisoformat(document["made_at"]),
            document["sql"],
            document["origin"],
            tuple(
                Superseded(key, datetime.fromisoformat(since))
                for key, since, *_ in document["superseded"]
            ),
            PartitionBy(tuple(map(read_term, document["cut"]))),
            tuple(map(_read_entry, document["log"])),
            document["position"],
            document["live_rows"],
            tuple(document["requests"]),
            document.get("request_pages", 0),
            document["pending"],
            document.get("definition", ""),
            tuple(document.get("primary_key", ())),
        )
    except _DAMAGE as exc:
        raise _damaged(exc) from exc


def encode_part(part: VersionPart) -> bytes:
    """Encode a part."""
    schema = base64.b64encode(part.schema.serialize()).decode()
    return _text({"schema": schema, "chunks": [_chunk(each) for each in part.chunks]})


def decode_part(key: str, stored: bytes) -> VersionPart:
    """Decode a part.

    Raises:
        CarawayError: the part cannot be read.
    """
    try:
        document = json.loads(stored)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(document["schema"])))
        return VersionPart(key, schema, tuple(map(_read_chunk, document["chunks"])))
    except _DAMAGE as exc:
        raise _damaged(exc) from exc


def _read(stored: bytes) -> Any:
    try:
        document = json.loads(stored)
        if document["format"] > _FORMAT:
            raise CarawayError(
                "a newer release of Caraway made this version of an accelerated dataset; run it"
            )
    except _DAMAGE as exc:
        raise _damaged(exc) from exc
    return document


def _chunk(chunk: ChunkInfo) -> list[object]:
    fields = [chunk.index, chunk.row_count, chunk.size_bytes, chunk.checksum]
    if chunk.partition or chunk.key or chunk.home:
        fields += [chunk.partition, chunk.key, chunk.home]
    return fields


def _read_chunk(written: list[Any]) -> ChunkInfo:
    return ChunkInfo(*written[:_CHUNK_FIELDS])


def _entry(entry: LogEntry) -> list[Any]:
    return [_chunk(entry.chunk), entry.made_ms, list(entry.requests)]


def _read_entry(written: list[Any]) -> LogEntry:
    chunk, made_ms, requests, *_ = written
    return LogEntry(_read_chunk(chunk), made_ms, tuple(requests))


def term(written: Term) -> list[object]:
    """Encode a partition term; `read_term` decodes it."""
    match written:
        case BucketKey(count, column, name):
            return ["bucket", column, name, count]
        case ByColumn(column, name):
            return ["column", column, name]
        case ByExpression(sql, name):
            return ["expression", sql, name]


def read_term(written: list[Any]) -> Term:
    """Decode a partition term."""
    kind, text, name, *more = written
    if kind == "bucket":
        return BucketKey(more[0], text, name)
    return ByColumn(text, name) if kind == "column" else ByExpression(text, name)


def _text(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _damaged(exc: Exception) -> CarawayError:
    return CarawayError(f"the version of an accelerated dataset is damaged: {exc}")
