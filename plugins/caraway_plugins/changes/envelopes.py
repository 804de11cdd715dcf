"""Reads Debezium envelopes: which rows each event inserts, updates or deletes.

An event is `{"before": row, "after": row, "source": {...}, "op": "c"}`, either bare or as the
`payload` next to its `schema`. A null event is a tombstone. It follows a delete for Kafka's
compaction and is ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_core.changes import Op
from caraway_plugins.changes import documents
from caraway_plugins.changes.meanings import UNKNOWN, Meaning, of_connect
from caraway_plugins.changes.offsets import Offsets
from caraway_plugins.changes.target import BadChangesError, ChangeTarget

Row = Mapping[str, object]
_OPS = "c (create), u (update), d (delete), r (snapshot read) and t (truncate)"
_EXAMPLE = '{"op": "c", "before": null, "after": {...}, "source": {...}}'


@dataclass(slots=True)
class EnvelopeRun:
    """Consecutive changes with equal semantic types; `positions` counts events from 1."""

    meaning: Meaning
    ops: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    offsets: list[bytes | None] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)


class Envelopes:
    """Reads events in order; `runs` holds their changes, `received` counts the events.

    `is_exact` is true if numbers were read with all their digits.
    """

    def __init__(self, target: ChangeTarget, is_exact: bool = False) -> None:
        self.is_exact = is_exact
        self.runs = [EnvelopeRun(UNKNOWN)]
        self.received = 0
        self._seen = 0
        self._key = target.primary_key
        self._columns = frozenset(target.schema.names)
        self._remedy = target.remedy
        self._create = _create_op(target)
        self._offsets = Offsets()
        self._schema: Any = None

    def continue_with(self, meaning: Meaning) -> None:
        """Set the semantic types of the values in the following events."""
        if meaning != self.runs[-1].meaning:
            self.runs.append(EnvelopeRun(meaning))

    def read(self, events: Sequence[object]) -> None:
        """Read events and add their changes to `runs`.

        Raises:
            BadChangesError: an event is malformed, or does not belong to this dataset.
        """
        start = self._seen + 1
        self._seen += len(events)
        for position, event in enumerate(events, start):
            if event is None:
                continue
            try:
                self._read(event, position)
            except BadChangesError as exc:
                raise BadChangesError(f"event {position}: {exc.message}") from exc

    def _read(self, event: Any, position: int) -> None:
        if type(event) is not dict:
            raise BadChangesError(f"it is not an object; send {_EXAMPLE}")
        if "payload" in event and "op" not in event:
            event = self._payload(event)
            if event is None:
                return
        op = event.get("op")
        take = _TAKE.get(op) if isinstance(op, str) else None
        if take is None:
            raise BadChangesError(_no_op(event, op))
        offset = self._offsets.offset_of(event.get("source"))
        run = self.runs[-1]
        for change, row in take(self, event):
            run.ops.append(change)
            run.rows.append(row)
            run.offsets.append(offset)
            run.positions.append(position)
        self.received += 1

    def _payload(self, event: Row) -> object:
        payload, schema = event["payload"], event.get("schema")
        if payload is None:
            return None
        if type(payload) is not dict:
            raise BadChangesError(f"its 'payload' is not an object; send {_EXAMPLE}")
        if schema is not self._schema:
            if schema != self._schema:
                self.continue_with(of_connect(schema).meaning_of("after"))
            # The next events may share this object, and identity is faster to compare.
            self._schema = schema
        return payload

    def _created(self, event: Row) -> tuple[tuple[int, Row], ...]:
        after = self._image(event, "after")
        self._check_key(after, "after")
        return ((self._create, after),)

    def _updated(self, event: Row) -> tuple[tuple[int, Row], ...]:
        self._need_key("an update")
        after = self._image(event, "after")
        self._check_key(after, "after")
        before = event.get("before")
        if before is None:
            return ((Op.UPSERT, after),)
        old = self._keys(self._image(event, "before"))
        # A row without the key comes from a table that does not log whole old rows.
        if None in old.values() or all(after[name] == old[name] for name in self._key):
            return ((Op.UPSERT, after),)
        return ((Op.DELETE, old), (Op.UPSERT, after))

    def _deleted(self, event: Row) -> tuple[tuple[int, Row], ...]:
        self._need_key("a delete")
        if event.get("before") is None:
            raise BadChangesError(
                "a delete (op 'd') without 'before' does not identify the row; configure the "
                f"source to send at least the primary key {self._said_key()} there"
            )
        before = self._image(event, "before")
        self._check_key(before, "before")
        return ((Op.DELETE, self._keys(before)),)

    def _truncated(self, _event: Row) -> tuple[tuple[int, Row], ...]:
        return ((Op.TRUNCATE, {}),)

    def _image(self, event: Row, name: str) -> Row:
        image = event.get(name)
        if type(image) is str:
            # Debezium writes MongoDB documents as text.
            try:
                image = documents.reader(self.is_exact)(image)
            except ValueError:
                image = None
        if type(image) is not dict:
            raise BadChangesError(f"op '{event['op']}' needs the row as an object in '{name}'")
        if not self._columns.issuperset(image):
            unknown = sorted(set(image) - self._columns)[0]
            raise BadChangesError(f"column '{unknown:.100}' is not in the dataset; {self._remedy}")
        return image

    def _keys(self, image: Row) -> dict[str, object]:
        return {name: image.get(name) for name in self._key}

    def _check_key(self, image: Row, where: str) -> None:
        for name in self._key:
            if image.get(name) is None:
                how = "NULL" if name in image else "missing"
                raise BadChangesError(f"the primary key column '{name}' is {how} in '{where}'")

    def _need_key(self, what: str) -> None:
        if not self._key:
            raise BadChangesError(
                f"{what} needs a key to identify the row; set the dataset's 'primary_key'"
            )

    def _said_key(self) -> str:
        return ", ".join(f"'{name}'" for name in self._key)


_TAKE = {
    "c": Envelopes._created,
    "r": Envelopes._created,
    "u": Envelopes._updated,
    "d": Envelopes._deleted,
    "t": Envelopes._truncated,
}


def _create_op(target: ChangeTarget) -> Op:
    if not target.primary_key:
        return Op.INSERT
    return Op.KEEP if target.twice == "first" else Op.UPSERT


def _no_op(event: Row, op: object) -> str:
    if op is None and "op" not in event:
        return f"it has no 'op'; send {_EXAMPLE}"
    said = f"'{op:.20}'" if isinstance(op, str) else "not a string"
    return f"its 'op' is {said}; known: {_OPS}"
