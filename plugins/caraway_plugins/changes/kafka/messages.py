"""Messages of a topic that are rows: their values in each format, and their keys."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.changes import Changes
from caraway_plugins.changes import decoding, documents
from caraway_plugins.changes.kafka.consuming import Event
from caraway_plugins.changes.kafka.settings import KafkaSettings
from caraway_plugins.changes.meanings import UNKNOWN, Meaning
from caraway_plugins.changes.target import BadChangesError, ChangeTarget


class MessageReader(Protocol):
    """Reads messages of one format."""

    def read(self, message: bytes) -> tuple[object, Meaning]:
        """Return the value of a message, and the semantic types in it."""
        ...


class RowMessages:
    """Decodes the messages of one dataset."""

    def __init__(self, settings: KafkaSettings) -> None:
        """Take the formats of values and keys."""
        self._settings = settings
        self._readers: dict[str, MessageReader] = {}

    def decode(self, events: Sequence[Event], target: ChangeTarget) -> Changes:
        """Decode messages.

        Raises:
            BadChangesError: one cannot be read or does not fit.
            RegistryAwayError: the schema registry does not respond.
        """

        def keys(number: int) -> Mapping[str, Any]:
            key = events[number].key
            return {} if key is None else self._key(key, target)

        if self._settings.form == "json":
            lines = (b"null" if each.value is None else _line(each.value) for each in events)
            return decoding.decode(b"\n".join(lines), "application/x-ndjson", {}, target, keys)
        reader = self._reader(self._settings.form, target)
        rows = [
            (None, UNKNOWN) if each.value is None else _record(*reader.read(each.value))
            for each in events
        ]
        return decoding.decode_rows(rows, target, keys)

    def _reader(self, form: str, target: ChangeTarget) -> MessageReader:
        if form not in self._readers:
            self._readers[form] = _reader(form, target)
        return self._readers[form]

    def _key(self, key: bytes, target: ChangeTarget) -> Mapping[str, object]:
        """Return the columns of the primary key that the key of a message has."""
        value: object
        match self._settings.key_form:
            case "text":
                value = _text(key, target)
            case "json":
                value = _parsed(key)
            case form:
                value, _ = self._reader(form, target).read(key)
        names = target.primary_key
        if isinstance(value, dict):
            return {name: value[name] for name in names if name in value}
        if len(names) != 1:
            raise BadChangesError(f"it is one value, and the primary key has {len(names)} columns")
        return {names[0]: value}


def _reader(form: str, target: ChangeTarget) -> MessageReader:
    # Here: most runtimes never read these formats, whose packages are slow to import.
    if form == "avro":
        from caraway_plugins.changes.avro import AvroMessages

        return AvroMessages(target.registry, target.avro_schema)
    from caraway_plugins.changes.protobuf import ProtobufMessages

    assert target.registry is not None
    return ProtobufMessages(target.registry)


def _record(value: object, meaning: Meaning) -> tuple[object, Meaning]:
    if not isinstance(value, dict):
        raise BadChangesError("the message is not a record; each message is one row")
    return value, meaning


def _line(value: bytes) -> bytes:
    """Return a message that is one row as one line.

    Raises:
        BadChangesError: it is not an object.
    """
    line = value.strip()
    if not line.startswith(b"{"):
        raise BadChangesError("the message is not a JSON object; each message is one row")
    # In JSON, the ends of lines are only between values.
    return line.replace(b"\n", b" ").replace(b"\r", b" ")


def _parsed(key: bytes) -> object:
    try:
        return documents.reader(True)(key)
    except (ValueError, RecursionError) as exc:
        raise BadChangesError(
            "it is not JSON; set params.kafka_key_format if it has another format"
        ) from exc


def _text(key: bytes, target: ChangeTarget) -> Any:
    try:
        text = key.decode()
        names = target.primary_key
        is_known = len(names) == 1 and names[0] in target.schema.names
        is_number = is_known and pa.types.is_integer(target.schema.field(names[0]).type)
        return int(text) if is_number else text
    except ValueError as exc:
        raise BadChangesError("it is no text, or none of its column") from exc
