"""Decodes the body of a request into changes."""

from collections.abc import Mapping
from typing import Literal

from caraway_core.changes import Changes
from caraway_plugins.changes import documents, tables
from caraway_plugins.changes.columns import ImpreciseError
from caraway_plugins.changes.envelopes import Envelopes
from caraway_plugins.changes.target import BadChangesError, ChangeTarget

Form = Literal["json", "avro"]
CONTENT_TYPES: Mapping[str, Form] = {
    "application/json": "json",
    "application/cdc+json": "json",
    "application/vnd.debezium+json": "json",
    "application/x-ndjson": "json",
    "application/ndjson": "json",
    "application/jsonl": "json",
    "application/avro": "avro",
    "application/cdc+avro": "avro",
    "application/vnd.debezium+avro": "avro",
}
SCHEMA_HEADER = "x-avro-schema"


def form(content_type: str | None) -> Form:
    """Return the format of a body from its content type.

    Raises:
        BadChangesError: the content type is missing or unsupported.
    """
    name = (content_type or "").partition(";")[0].strip().lower()
    found = CONTENT_TYPES.get(name)
    if found is None:
        said = (
            f"Content-Type '{name:.100}' is not supported"
            if name
            else "the Content-Type is missing"
        )
        raise BadChangesError(f"{said}; known: {', '.join(CONTENT_TYPES)}")
    return found


def decode(
    body: bytes, content_type: str | None, headers: Mapping[str, str], target: ChangeTarget
) -> Changes:
    """Decode the events of a body; header names are in lower case.

    Raises:
        BadChangesError: an event cannot be read or does not fit; the message names it.
        RegistryAwayError: the schema registry does not respond.
    """
    try:
        if form(content_type) == "avro":
            return _avro(body, headers.get(SCHEMA_HEADER), target)
        try:
            return _json(documents.events(body), target)
        except ImpreciseError:
            return _json(documents.events(body, is_exact=True), target, is_exact=True)
    except RecursionError as exc:
        raise BadChangesError("the events are nested too deeply") from exc


def _json(events: list[object], target: ChangeTarget, is_exact: bool = False) -> Changes:
    envelopes = Envelopes(target, is_exact)
    envelopes.read(events)
    return tables.made(envelopes, target)


def _avro(body: bytes, header: str | None, target: ChangeTarget) -> Changes:
    # Most runtimes never receive Avro, and the import of fastavro is slow.
    from caraway_plugins.changes import avro

    # Avro distinguishes doubles from decimals, so its doubles are exact.
    envelopes = Envelopes(target, is_exact=True)
    for part in avro.parts(body, target, header):
        envelopes.continue_with(part.meaning)
        envelopes.read(part.events)
    return tables.made(envelopes, target)
