"""Decodes the body of a request into changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from caraway_core.changes import Changes, Op, log_schema
from caraway_plugins.changes import columns, documents, learning
from caraway_plugins.changes.columns import BadValueError, ImpreciseError
from caraway_plugins.changes.envelopes import EnvelopeRun, Envelopes
from caraway_plugins.changes.meanings import Meaning
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
_WHOLE_ROWS = (Op.INSERT, Op.UPSERT, Op.KEEP)
MayRound = Callable[[str | None], bool]
Keys = Callable[[int], Mapping[str, Any]]
"""Returns the columns of the primary key that the key of a message has, by its number."""


def no_keys(_number: int) -> Mapping[str, object]:
    """Return that messages have no keys."""
    return {}


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
    body: bytes,
    content_type: str | None,
    headers: Mapping[str, str],
    target: ChangeTarget,
    keys: Keys = no_keys,
) -> Changes:
    """Decode the events of a body; header names are in lower case. Rows may have `keys`.

    Raises:
        BadChangesError: an event cannot be read or does not fit; the message names it.
        RegistryAwayError: the schema registry does not respond.
    """
    try:
        if form(content_type) == "avro":
            return _avro(body, headers.get(SCHEMA_HEADER), target)
        try:
            return _json(body, target, keys)
        except ImpreciseError:
            return _json(body, target, keys, is_exact=True)
    except RecursionError as exc:
        raise BadChangesError("the events are nested too deeply") from exc


def decode_rows(
    rows: Sequence[tuple[object, Meaning]], target: ChangeTarget, keys: Keys
) -> Changes:
    """Decode rows, each with the semantic types of its values; None stands for a deleted one.

    Raises:
        BadChangesError: a row does not fit; the message names it.
        RegistryAwayError: the schema registry does not respond.
    """
    events = [_event_of(row, number, target, keys) for number, (row, _) in enumerate(rows)]
    target = learning.target_of(events, target, documents.reader(True), has_decimals=True)
    if (count := _without_columns(events, target)) is not None:
        return count
    envelopes = Envelopes(target, is_exact=True)
    for event, (_, meaning) in zip(events, rows, strict=True):
        envelopes.continue_with(meaning)
        envelopes.read([event])
    return _made(envelopes, target)


def _json(body: bytes, target: ChangeTarget, keys: Keys, is_exact: bool = False) -> Changes:
    if learning.is_due(target) and not is_exact and documents.may_round(body):
        raise ImpreciseError
    events = documents.events(body, is_exact)
    if target.are_rows:
        events = [_event_of(row, number, target, keys) for number, row in enumerate(events)]
    target = learning.target_of(events, target, documents.reader(is_exact))
    if (count := _without_columns(events, target)) is not None:
        return count
    envelopes = Envelopes(target, is_exact)
    envelopes.read(events)
    return _made(envelopes, target, partial(documents.may_round, body))


def _avro(body: bytes, header: str | None, target: ChangeTarget) -> Changes:
    # Most runtimes never receive Avro, and the import of fastavro is slow.
    from caraway_plugins.changes import avro

    # Avro distinguishes doubles from decimals, so its doubles are exact.
    parts = list(avro.parts(body, target, header))
    events = [event for part in parts for event in part.events]
    target = learning.target_of(events, target, documents.reader(True), has_decimals=True)
    if (count := _without_columns(events, target)) is not None:
        return count
    envelopes = Envelopes(target, is_exact=True)
    for part in parts:
        envelopes.continue_with(part.meaning)
        envelopes.read(part.events)
    return _made(envelopes, target)


def _without_columns(events: Sequence[object], target: ChangeTarget) -> Changes | None:
    """Return that nothing changes, for deletes and truncations of a dataset that had no row yet.

    Raises:
        BadChangesError: an event is malformed.
    """
    if not learning.is_due(target):
        return None
    # An event is checked as one of a dataset that has the columns of the key.
    keys = pa.schema([(name, pa.string()) for name in target.primary_key])
    checked = Envelopes(replace(target, schema=keys))
    for event in events:
        if event is not None:
            checked.read([_with_keys(event, target.primary_key)])
    return Changes(log_schema(pa.schema([])).empty_table(), checked.received)


def _with_keys(event: object, key: Sequence[str]) -> object:
    """Return an event with no columns before it but those of the key."""
    if not isinstance(event, dict):
        return event
    if "payload" in event and "op" not in event:
        return {"payload": _with_keys(event["payload"], key)}
    before = event.get("before")
    if not isinstance(before, dict):
        return event
    return {**event, "before": {name: before[name] for name in key if name in before}}


def _never(_name: str | None) -> bool:
    return False


def _made(read: Envelopes, target: ChangeTarget, may_round: MayRound = _never) -> Changes:
    """Convert the changes of events to a table with the columns of the dataset's log.

    `may_round` says whether numbers may have lost digits, of one column or of all.

    Raises:
        BadChangesError: a value does not fit its column.
        ImpreciseError: the number of a decimal column has lost digits.
    """
    schema = log_schema(target.schema)
    tables = [_table(run, target, schema, read.is_exact, may_round) for run in read.runs if run.ops]
    rows = pa.concat_tables(tables) if tables else schema.empty_table()
    return Changes(rows, read.received)


def _table(
    run: EnvelopeRun,
    target: ChangeTarget,
    schema: pa.Schema,
    is_exact: bool,
    may_round: MayRound,
) -> pa.Table:
    arrays = [_column(run, field, target, is_exact, may_round) for field in target.schema]
    arrays += [pa.array(run.ops, pa.int8()), pa.array(run.offsets, pa.binary())]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(
    run: EnvelopeRun, field: pa.Field, target: ChangeTarget, is_exact: bool, may_round: MayRound
) -> pa.Array:
    name = field.name
    given: list[object] = [row.get(name) for row in run.rows]
    if not field.nullable and None in given:
        _check_present(run, given, name)
    try:
        try:
            return columns.array(given, field.type, run.meaning.meaning_of(name), is_exact)
        except ImpreciseError:
            # Doubles from short texts are exact. A value inside of another one has another name.
            if may_round(name if pa.types.is_decimal(field.type) else None):
                raise
            return columns.array(given, field.type, run.meaning.meaning_of(name), is_exact=True)
    except BadValueError as exc:
        position = run.positions[exc.index]
        learned = f"; {target.remedy}" if target.is_learned else ""
        raise BadChangesError(
            f"event {position}: column '{name}{exc.inner}': {exc.reason}{learned}"
        ) from exc


def _check_present(run: EnvelopeRun, given: list[object], name: str) -> None:
    for index, (value, op) in enumerate(zip(given, run.ops, strict=True)):
        if value is None and op in _WHOLE_ROWS:
            raise BadChangesError(
                f"event {run.positions[index]}: column '{name}' is missing or NULL, but the "
                "dataset declares it as not nullable"
            )


def _event_of(row: object, number: int, target: ChangeTarget, keys: Keys) -> object:
    """Return the event of a row; without a row, it deletes the row of its key.

    It changes nothing if there is no key, or rows are not told apart.

    Raises:
        BadChangesError: the key of the message cannot be read.
    """
    key = target.primary_key
    if row is None:
        before = _key_of(number, keys) if key else {}
        return {"op": "d", "before": before} if before else None
    if not isinstance(row, dict):
        return {"op": "c", "after": row}
    if any(name not in row for name in key):
        row = {**_key_of(number, keys), **row}
    if not target.is_learned:
        # A topic is written for many readers, and has fields that this one leaves out.
        row = {name: row[name] for name in target.schema.names if name in row}
    return {"op": "c", "after": row}


def _key_of(number: int, keys: Keys) -> Mapping[str, object]:
    try:
        return keys(number)
    except BadChangesError as exc:
        raise BadChangesError(f"event {number + 1}: its key: {exc.message}") from exc
