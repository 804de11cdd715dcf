"""Reads events from Avro: container files, records in Confluent framing, and bare records.

A body can hold several records in each form. A container starts with magic bytes. Bare records use
the schema of the request, or the dataset's schema if it has no registry.
"""

import functools
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fastavro

from caraway_plugins.changes import avro_schemas
from caraway_plugins.changes.avro_schemas import AvroSchema
from caraway_plugins.changes.meanings import Meaning
from caraway_plugins.changes.target import AvroSchemas, BadChangesError, ChangeTarget

_CONTAINER = b"Obj\x01"
_FRAMED = 0
_HEAD_BYTES = 5
_NO_SCHEMA = (
    "Avro needs its schema: send it in the header X-Avro-Schema, or set the dataset's param "
    "avro_schema or schema_registry_url"
)
_kept = functools.lru_cache(maxsize=64)(avro_schemas.of_text)


@dataclass(frozen=True, slots=True)
class AvroPart:
    """Events that were written with one schema."""

    events: list[object]
    meaning: Meaning


def parts(body: bytes, target: ChangeTarget, header: str | None) -> list[AvroPart]:
    """Read the events of a body; `header` is the schema that was sent with it.

    Raises:
        BadChangesError: the body cannot be read, or its schema is unknown.
        RegistryAwayError: the schema registry does not respond.
    """
    if not body:
        raise BadChangesError("the body is empty; send at least one event")
    if body.startswith(_CONTAINER):
        return [_container(body)]
    if header:
        return [_bare(body, _kept(header))]
    if target.registry is not None:
        return list(_framed(body, target.registry))
    if target.avro_schema:
        return [_bare(body, _kept(target.avro_schema))]
    raise BadChangesError(_NO_SCHEMA)


def _container(body: bytes) -> AvroPart:
    try:
        opened = fastavro.reader(io.BytesIO(body))
        codec, writer = opened.codec, opened.writer_schema
    except Exception as exc:  # fastavro raises any exception at malformed input.
        raise BadChangesError(f"the Avro file cannot be opened: {_reason(exc)}") from exc
    if codec != "null":
        raise BadChangesError(f"the Avro file is compressed ({codec:.20}); write it plain")
    schema = avro_schemas.of_document(writer)
    found: list[Any] = []
    try:
        found.extend(opened)
    except Exception as exc:
        raise _broken(len(found) + 1, exc) from exc
    return AvroPart(found, schema.meaning)


def _bare(body: bytes, schema: AvroSchema) -> AvroPart:
    stream = io.BytesIO(body)
    found: list[Any] = []
    while stream.tell() < len(body):
        found.append(_record(stream, schema, len(found) + 1))
    return AvroPart(found, schema.meaning)


class AvroMessages:
    """Reads messages that are one record each, with the schema that they name."""

    def __init__(self, registry: AvroSchemas | None, text: str | None) -> None:
        """Take where schemas are; the text of one is that of messages without a name of theirs."""
        self._registry = registry
        self._text = text
        self._kept: dict[int, AvroSchema] = {}

    def read(self, message: bytes) -> tuple[object, Meaning]:
        """Return the record of a message, and the semantic types of its values.

        Raises:
            BadChangesError: it is none, or its schema is unknown.
            RegistryAwayError: the schema registry does not respond.
        """
        stream = io.BytesIO(message)
        if self._registry is not None:
            schema = self._schema(schema_id(stream.read(_HEAD_BYTES), 1), self._registry)
        else:
            schema = _kept(self._text or "")
        record = _record(stream, schema, 1)
        if stream.tell() != len(message):
            raise BadChangesError("event 1 is longer than a record of its Avro schema")
        return record, schema.own

    def _schema(self, id_: int, registry: AvroSchemas) -> AvroSchema:
        if id_ not in self._kept:
            self._kept[id_] = avro_schemas.of_document(registry.schema(id_))
        return self._kept[id_]


def schema_id(head: bytes, number: int) -> int:
    """Return the id of the schema that a message begins with.

    Raises:
        BadChangesError: it begins with none.
    """
    if len(head) < _HEAD_BYTES or head[0] != _FRAMED:
        raise BadChangesError(
            f"event {number} is not in the wire format of the schema registry, which is a "
            "zero byte, 4 bytes with the number of the schema, and the record"
        )
    return int.from_bytes(head[1:_HEAD_BYTES], "big")


def _framed(body: bytes, registry: AvroSchemas) -> Iterator[AvroPart]:
    """Read records, each preceded by a zero byte and its schema id."""
    stream, number = io.BytesIO(body), 0
    kept: dict[int, AvroSchema] = {}
    while stream.tell() < len(body):
        number += 1
        id_ = schema_id(stream.read(_HEAD_BYTES), number)
        if id_ not in kept:
            kept[id_] = avro_schemas.of_document(registry.schema(id_))
        yield AvroPart([_record(stream, kept[id_], number)], kept[id_].meaning)


def _record(stream: io.BytesIO, schema: AvroSchema, number: int) -> object:
    try:
        return fastavro.schemaless_reader(stream, schema.parsed, None)
    except Exception as exc:
        raise _broken(number, exc) from exc


def _broken(number: int, exc: Exception) -> BadChangesError:
    return BadChangesError(f"event {number} is not a record of the Avro schema: {_reason(exc)}")


def _reason(exc: Exception) -> str:
    return (
        "it is truncated" if isinstance(exc, EOFError) else f"{str(exc) or type(exc).__name__:.300}"
    )
