"""Writes the manifests of a state of a table. Its functions block."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from caraway_gateway.iceberg import histories
from caraway_gateway.iceberg.loaded_tables import TableState, TableTitle
from caraway_plugins.iceberg import manifests, planned
from caraway_plugins.iceberg.column_types import IcebergSchema
from caraway_plugins.iceberg.file_statistics import FooterReader
from caraway_plugins.iceberg.history import LostFile, TableHistory
from caraway_plugins.iceberg.manifests import AddedBy, DataFile, FileTotals, WrittenManifest
from caraway_plugins.iceberg.metadata import TableSnapshot
from caraway_plugins.iceberg.partitioning import PartitionSpec
from caraway_plugins.sources import parquet_files
from caraway_plugins.sources.parquet_files import ParquetFile
from caraway_plugins.stores.published import Published

KEY_LENGTH = 32
TASKS = "tasks.json"
_LIST = "list.avro"


def home(uuid: str, key: str) -> str:
    """Return the folder of a state of a table."""
    return f"{uuid}/{key[:KEY_LENGTH]}"


@dataclass(frozen=True, slots=True)
class TableContent:
    """The columns and files of a state."""

    schema: IcebergSchema
    spec: PartitionSpec
    found: Sequence[ParquetFile]
    names: Mapping[str, str]

    def data_files(self, known: Mapping[LostFile, AddedBy]) -> list[DataFile]:
        """Read the footers of the files, some of which earlier snapshots added."""
        reader = FooterReader(self.schema, self.names)
        return parquet_files.read_footers(
            self.found,
            lambda file, footer: DataFile(
                file.location,
                file.found.size_bytes,
                reader.read(footer),
                self.spec.values(file.values),
                known.get(histories.identity(file)),
            ),
        )


def followed(
    title: TableTitle,
    past: TableHistory,
    new: TableContent,
    place: Published,
    state: TableState,
    *,
    is_copy: bool,
) -> TableHistory:
    """Return a history with a snapshot of a state, whose manifests are written."""
    current = past.current
    before: Mapping[LostFile, AddedBy] | None = None
    removed = 0 if current is None else int(current.document["summary"]["total-data-files"])
    if not is_copy and current is not None and not current.is_copy:
        before = histories.files(place, home(title.uuid, current.key))
        if before is None:
            past = past.only(lambda each: each.is_copy)
    now = {histories.identity(each) for each in new.found}
    lost = [each for each in before or () if each not in now]
    now_ms = histories.now_ms()
    if (earlier := past.with_key(state.key)) is not None:
        document = past.restored(earlier, now_ms)
    else:
        snapshot = TableSnapshot(
            past.next_id(state.key),
            past.moment_of(state.timestamp_ms, now_ms),
            place.location(f"{home(title.uuid, state.key)}/{_LIST}"),
            removed_files=removed if before is None else len(lost),
            sequence_number=past.last_sequence_number + 1,
            parent_id=None if past.current is None else past.current.id,
            schema_id=new.schema.id,
        )
        document = _written(title, snapshot, new, before or {}, place, state).document()
    return past.followed_by(document, state.key, now_ms, is_copy=is_copy, lost=lost)


def _written(
    title: TableTitle,
    snapshot: TableSnapshot,
    new: TableContent,
    before: Mapping[LostFile, AddedBy],
    place: Published,
    state: TableState,
) -> TableSnapshot:
    """Write the manifests of a snapshot, and return it with its totals."""
    folder = home(title.uuid, state.key)
    data = new.data_files(before)
    written: list[tuple[str, WrittenManifest]] = []
    for start in range(0, len(data), manifests.MOST_FILES):
        part = manifests.manifest(
            new.schema, new.spec, snapshot.id, data[start : start + manifests.MOST_FILES]
        )
        name = f"{folder}/m{len(written)}.avro"
        place.write(name, part.content)
        written.append((place.location(name), part))
    listed = manifests.manifest_list(
        snapshot.id, snapshot.sequence_number, written, snapshot.parent_id
    )
    place.write(f"{folder}/{_LIST}", listed)
    tasks = [planned.task(each) for each in data]
    place.write(f"{folder}/{TASKS}", json.dumps(tasks, default=str).encode())
    own = AddedBy(snapshot.id, snapshot.sequence_number)
    histories.write_files(place, folder, new.found, [each.added_by or own for each in data])
    added = FileTotals.count_files(each for each in data if each.added_by is None)
    return replace(snapshot, added=added, total=FileTotals.count_files(data))
