"""The history of a table from snapshot to snapshot: ids of its fields, schemas and snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from caraway_plugins.iceberg import column_types, metadata
from caraway_plugins.iceberg.column_types import IcebergField, IcebergSchema, Path

MOST_SNAPSHOTS = 100
MOST_LOST = 1_000
"""The most files of older snapshots that are looked for, to list those that are there."""
_MOST_FIELDS = 20_000
Describe = Callable[[IcebergSchema, int], Mapping[str, Any]]
LostFile = tuple[str, int, str]
"""The path, size and stamp of a file that a snapshot has, and a later one lacks."""


@dataclass(frozen=True, slots=True)
class KeptField:
    """The id of a field, and its type: a primitive one, or `struct`, `list` or `map`."""

    id: int
    kind: str

    @classmethod
    def from_field(cls, field: IcebergField) -> KeptField:
        """Return what is kept of a field."""
        kind = field.type if isinstance(field.type, str) else field.type.document()["type"]
        return cls(field.id, kind)


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """A snapshot as clients see it. `key` names the state of the table that has its manifests.

    The files of a copy belong to it; others are those of the source, whose owner may delete them.
    """

    key: str
    document: Mapping[str, Any]
    is_copy: bool
    replaced_ms: int | None = None
    lost: tuple[LostFile, ...] = ()
    """Its files that the next snapshot lacks."""

    @property
    def id(self) -> int:
        found: int = self.document["snapshot-id"]
        return found

    @property
    def sequence_number(self) -> int:
        found: int = self.document["sequence-number"]
        return found


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The snapshots of a table that can be read, oldest first, and what they share."""

    table: Mapping[str, Any] = field(default_factory=dict)
    """The parts of its metadata that have nothing to do with snapshots."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The names in files of columns that have another name in the table."""
    fields: Mapping[Path, KeptField] = field(default_factory=dict)
    last_id: int = 0
    schemas: tuple[Mapping[str, Any], ...] = ()
    last_schema_id: int = -1
    snapshots: tuple[KeptSnapshot, ...] = ()
    last_sequence_number: int = 0

    @property
    def current(self) -> KeptSnapshot | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the states that its snapshots need."""
        return frozenset(each.key for each in self.snapshots)

    def with_key(self, key: str) -> KeptSnapshot | None:
        """Return the newest snapshot of a state; None where there is none."""
        snapshots = [each for each in self.snapshots if each.key == key]
        return snapshots[-1] if snapshots else None

    def with_schema(self, snapshot: KeptSnapshot) -> TableHistory:
        """Return the history with the schema of a snapshot as that of the table."""
        return replace(
            self, table={**self.table, "current-schema-id": snapshot.document["schema-id"]}
        )

    def in_use(self) -> TableHistory:
        """Return the history with a current snapshot that is not replaced."""
        *before, last = self.snapshots
        return replace(self, snapshots=(*before, replace(last, replaced_ms=None)))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> TableHistory:
        """Return the history that `document` wrote."""
        return cls(
            document["table"],
            document["names"],
            {tuple(path): KeptField(id_, kind) for path, id_, kind in document["fields"]},
            document["last-id"],
            tuple(document["schemas"]),
            document["last-schema-id"],
            tuple(_snapshot(each) for each in document["snapshots"]),
            document["last-sequence-number"],
        )

    def document(self) -> dict[str, Any]:
        """Return the history as JSON."""
        return {
            "table": self.table,
            "names": self.names,
            "fields": [[path, each.id, each.kind] for path, each in self.fields.items()],
            "last-id": self.last_id,
            "schemas": self.schemas,
            "last-schema-id": self.last_schema_id,
            "snapshots": [
                [each.key, each.document, each.is_copy, each.replaced_ms, each.lost]
                for each in self.snapshots
            ],
            "last-sequence-number": self.last_sequence_number,
        }

    def metadata(self, uuid: str) -> dict[str, Any]:
        """Return the metadata of the table as JSON."""
        snapshots = [each.document for each in self.snapshots]
        return metadata.document(uuid, self.table, snapshots, self.schemas)

    def ids(self, columns: IcebergSchema) -> dict[Path, int]:
        """Return the ids that fields of some columns have.

        A field whose type changed, otherwise than Iceberg allows, gets another id.
        """
        found: dict[Path, int] = {}
        for path, each in columns.paths():
            kept = self.fields.get(path)
            if kept is None or (len(path) > 1 and path[:-1] not in found):
                continue
            if column_types.holds(KeptField.from_field(each).kind, kept.kind):
                found[path] = kept.id
        return found

    def unless_contradicted(self, own_ids: Mapping[Path, int]) -> TableHistory:
        """Return the history; without its fields and snapshots if ids of files are others."""
        paths = {each.id: path for path, each in self.fields.items()}
        for path, id_ in own_ids.items():
            kept = self.fields.get(path)
            if (kept is not None and kept.id != id_) or paths.get(id_, path) != path:
                return replace(self, fields={}, snapshots=(), schemas=())
        return self

    def described(
        self, schema: IcebergSchema, names: Mapping[str, str], table: Describe
    ) -> tuple[TableHistory, IcebergSchema]:
        """Note columns, and return the history and their schema with its id.

        `table` returns the parts of metadata for a schema and the last id of a field.
        """
        document = schema.document()
        known = [each["schema-id"] for each in self.schemas if {**each, "schema-id": 0} == document]
        schema = replace(schema, id=known[0] if known else self.last_schema_id + 1)
        now = {path: KeptField.from_field(each) for path, each in schema.paths()}
        before = self.fields if len(self.fields) + len(now) <= _MOST_FIELDS else {}
        last_id = max(self.last_id, schema.last_id)
        kept = replace(
            self,
            table=table(schema, last_id),
            names=dict(names),
            fields={**before, **now},
            last_id=last_id,
            schemas=self.schemas if known else (*self.schemas, schema.document()),
            last_schema_id=max(self.last_schema_id, schema.id),
        )
        if self.table.get("partition-specs") != kept.table["partition-specs"]:
            return replace(kept, snapshots=()), schema
        if dict(self.names) != dict(names):
            return kept.only(lambda each: each.is_copy), schema
        # Files without ids are read by the names of today.
        ids = {path: each.id for path, each in now.items()}
        old = {each["schema-id"]: _ids(each) for each in self.schemas}
        return kept.only(
            lambda each: each.is_copy or old[each.document["schema-id"]].items() <= ids.items()
        ), schema

    def only(self, holds: Callable[[KeptSnapshot], bool]) -> TableHistory:
        """Return the history with those of its snapshots that hold, and their schemas."""
        snapshots = tuple(each for each in self.snapshots if holds(each))
        needed = {each.document["schema-id"] for each in snapshots}
        needed.add(self.table.get("current-schema-id"))
        schemas = tuple(each for each in self.schemas if each["schema-id"] in needed)
        return replace(self, snapshots=snapshots, schemas=schemas)

    def moment_of(self, timestamp_ms: int, now_ms: int) -> int:
        """Return the time of the next snapshot, which is later than that of the last one."""
        timestamp_ms = min(timestamp_ms, now_ms)
        last: int = self.snapshots[-1].document["timestamp-ms"] if self.snapshots else -1
        return timestamp_ms if timestamp_ms > last else max(now_ms, last + 1)

    def next_id(self, key: str) -> int:
        """Return the id of the next snapshot."""
        text = f"{key}:{self.last_sequence_number + 1}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:16], 16) >> 1 or 1

    def followed_by(
        self,
        snapshot: Mapping[str, object],
        key: str,
        now_ms: int,
        *,
        is_copy: bool,
        lost: Sequence[LostFile] = (),
    ) -> TableHistory:
        """Return the history with one more snapshot, which becomes the current one.

        `lost` are files of the one before it that it lacks.
        """
        before = self.snapshots
        if before:
            last = replace(before[-1], replaced_ms=now_ms, lost=tuple(lost))
            before = (*before[:-1], last)
        if is_copy:  # From now on there are no lists of what happens to the files of a source.
            before = tuple(each for each in before if each.is_copy)
        kept = KeptSnapshot(key, snapshot, is_copy)
        return replace(
            self,
            snapshots=(*before, kept)[-MOST_SNAPSHOTS:],
            last_sequence_number=kept.sequence_number,
        ).only(lambda _each: True)

    def restored(self, earlier: KeptSnapshot, now_ms: int) -> dict[str, object]:
        """Return a new snapshot with the rows of an earlier one, as JSON."""
        summary = {**earlier.document["summary"], "operation": "overwrite"}
        current = self.current
        return {
            **earlier.document,
            "snapshot-id": self.next_id(earlier.key),
            "parent-snapshot-id": earlier.id if current is None else current.id,
            "sequence-number": self.last_sequence_number + 1,
            "timestamp-ms": self.moment_of(now_ms, now_ms),
            "summary": summary,
        }

    def readable(
        self, now_ms: int, kept_ms: int, are_there: Callable[[Sequence[LostFile]], bool]
    ) -> TableHistory:
        """Return the history with the snapshots that can be read.

        Copies are kept for some time after they were replaced. Of other snapshots, all files must
        be there still.
        """
        found, left, is_lost = set(), MOST_LOST, False
        for each in reversed(self.snapshots):
            if each.is_copy:
                is_kept = each.replaced_ms is None or each.replaced_ms + kept_ms > now_ms
            else:
                left -= len(each.lost)
                is_lost = is_lost or left < 0 or (bool(each.lost) and not are_there(each.lost))
                is_kept = not is_lost
            if is_kept:
                found.add(each.id)
        if len(found) == len(self.snapshots):
            return self
        return self.only(lambda each: each.id in found)


def _snapshot(given: Sequence[Any]) -> KeptSnapshot:
    key, document, is_copy, replaced_ms, lost = given
    return KeptSnapshot(key, document, is_copy, replaced_ms, tuple(tuple(each) for each in lost))


def _ids(schema: Mapping[str, object]) -> dict[Path, int]:
    """Return the ids of all fields of a schema in JSON, by path."""
    return dict(_ids_below((), schema))


def _ids_below(above: Path, type_: object) -> Iterator[tuple[Path, int]]:
    if not isinstance(type_, Mapping):
        return
    for each in type_.get("fields", ()):
        yield (*above, each["name"]), each["id"]
        yield from _ids_below((*above, each["name"]), each["type"])
    for part in ("element", "key", "value"):
        if part in type_:
            yield (*above, part), type_[f"{part}-id"]
            yield from _ids_below((*above, part), type_[part])
