"""Commits the files of a statement as one snapshot, again if another writer was faster."""

from __future__ import annotations

import io
import random
import secrets
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import DatasetError, ExecutionError, InvalidQueryError
from caraway_core.process import write_marks
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import RemoteTable
from caraway_plugins.iceberg import (
    added_lists,
    added_manifests,
    added_snapshots,
    read_metadata,
)
from caraway_plugins.iceberg.added_lists import ListedSnapshot
from caraway_plugins.iceberg.added_manifests import AddedFile, Content, WrittenSpec
from caraway_plugins.iceberg.added_snapshots import AddedSnapshot
from caraway_plugins.iceberg.column_types import NoIcebergTypeError
from caraway_plugins.iceberg.read_manifests import ListedFile
from caraway_plugins.sources.iceberg import opening
from caraway_plugins.sources.iceberg.opening import OpenedTable
from caraway_plugins.sources.iceberg.writing import catalogs, formats, lineage, written
from caraway_plugins.sources.iceberg.writing.catalogs import LostCommitError
from caraway_plugins.sources.iceberg.writing.kept_manifests import KeptManifests
from caraway_plugins.sources.iceberg.writing.row_files import TablePlace

_MARK, _COUNT = "caraway.write", "caraway.rows"
_TRIES = 10
_DELAYS = Delays(0.05, 2.0, jitter=1.0)
_DATA_PATH, _METADATA_PATH = "write.data.path", "write.metadata.path"
Files = Mapping[Content, Sequence[tuple[WrittenSpec, Sequence[AddedFile]]]]


@dataclass(frozen=True, slots=True)
class Base:
    """The snapshot whose rows are changed; None where the table had none."""

    snapshot_id: int | None


def find_commit(table: RemoteTable, mark: str) -> int | None:
    """See `CommitLookup`."""
    document = opening.open_table(written.request_of(table)).document
    for each in document.get("snapshots") or ():
        if (summary := each.get("summary", {})).get(_MARK) == mark:
            return int(summary[_COUNT])
    return None


def _opened(request: SourceRequest) -> OpenedTable:
    """Open a table, with the lists that the first version of the format need not have."""
    opened = opening.open_table(request)
    return replace(opened, document=read_metadata.with_lists(opened.document))


class SnapshotWrite:
    """One write to a table, which is open."""

    def __init__(self, title: str, nothing: str, table: RemoteTable, opened: OpenedTable) -> None:
        """Take the words of errors: for the write, and for a write that changed no row."""
        self._title, self._nothing = title, nothing
        self._request = written.request_of(table)
        self._is_settled = False
        self._replaced: Mapping[str, ListedFile] = {}
        self._rewritten: list[str] = []
        """The manifests of the last try that are those of others without replaced files."""
        self.opened = opened
        self.snapshot_id = secrets.randbits(62) + 1
        location = opened.metadata.location
        named = opened.document.get("properties") or {}
        data = str(named.get(_DATA_PATH) or f"{location}/data").rstrip("/")
        metadata = str(named.get(_METADATA_PATH) or f"{location}/metadata").rstrip("/")
        self.data = TablePlace(opened.files, data)
        self._metadata = TablePlace(opened.files, metadata)

    @classmethod
    def begin(
        cls, title: str, nothing: str, table: RemoteTable, is_change: bool = False
    ) -> SnapshotWrite:
        """Open a table for a write, which adds rows or also changes those that are there.

        Raises:
            QueryError: it cannot be opened or written.
        """
        try:
            opened = _opened(written.request_of(table))
        except DatasetError as exc:
            raise ExecutionError(f"{title} failed: {exc.message}; {nothing}") from exc
        write = cls(title, nothing, table, opened)
        if (why := formats.refusal(opened.document, is_change)) is not None:
            raise write.refused(why)
        if written.columns(opened.metadata.schema()) != table.schema:
            again = "; refresh the dataset, and run the statement again"
            raise write.failed("the columns of the table have changed", again)
        return write

    def refused(self, why: str) -> InvalidQueryError:
        """Return the error of a write that is wrong."""
        return InvalidQueryError(f"{self._title} failed: {why}; {self._nothing}")

    def failed(self, why: str, remedy: str = "") -> ExecutionError:
        """Return the error of a write that did not succeed."""
        return ExecutionError(f"{self._title} failed: {why}; {self._nothing}{remedy}")

    def spec(self, id_: int | None = None) -> WrittenSpec:
        """Return a spec of the table by its id, or the one of new files.

        Raises:
            InvalidQueryError: files are not written with such partitions.
        """
        document = self.opened.document
        wanted = document["default-spec-id"] if id_ is None else id_
        found = next(each for each in document["partition-specs"] if each["spec-id"] == wanted)
        try:
            return added_manifests.spec(found, self.opened.metadata.known_fields())
        except NoIcebergTypeError as exc:
            raise self.refused(f"the table cannot be written: {exc}") from exc

    def schema_document(self) -> Mapping[str, Any]:
        """Return the schema of the table as JSON."""
        document = self.opened.document
        id_ = document["current-schema-id"]
        found: Mapping[str, Any] = next(
            each for each in document["schemas"] if each["schema-id"] == id_
        )
        return found

    def commit(
        self,
        files: Files,
        count: int,
        base: Base | None = None,
        replaced: Sequence[ListedFile] = (),
    ) -> None:
        """Commit files of a statement for `count` rows; with `base`, rows of it are changed.

        `replaced` are data files that are taken out of the table.

        Raises:
            QueryError: it is not committed. The message says where that is not known.
        """
        manifests = self._manifests(files)
        every: Mapping[Content, list[AddedFile]] = {
            content: [each for _, of_spec in groups for each in of_spec]
            for content, groups in files.items()
        }
        notes = {_MARK: write_marks.current(), _COUNT: str(count)}
        added = AddedSnapshot(self.snapshot_id, every, notes)
        self._is_settled = True
        self._replaced = {each.location: each for each in replaced}
        try:
            self._commit(added, manifests, base)
        except DatasetError as exc:
            self._delete_files()
            raise self.failed(exc.message) from exc

    def discard(self) -> None:
        """Delete the files of a write that was not to be committed yet."""
        if not self._is_settled:
            self._delete_files()

    def _delete_files(self) -> None:
        self.data.delete_files()
        self._metadata.delete_files()

    def _commit(
        self, added: AddedSnapshot, manifests: Sequence[Mapping[str, Any]], base: Base | None
    ) -> None:
        catalog = catalogs.catalog_of(self._request, self._metadata)
        schema_id, version = self.opened.document["current-schema-id"], self.version
        for turn in range(1, _TRIES + 1):
            document = self.opened.document
            if document["current-schema-id"] != schema_id:
                self._refuse_conflict("its columns")
            if self.version != version:
                self._refuse_conflict("the version of its format")
            if base and not added_snapshots.has_only_appends(document, base.snapshot_id):
                self._refuse_conflict("its rows")
            if base and self._has_new_ids(base):
                self._refuse_conflict("the ids of its rows")
            if self._is_committed(catalog, added, manifests):
                return
            time.sleep(_DELAYS.delay_s(turn, random.random()))
            self.opened = _opened(self._request)
        self._refuse_conflict(f"it {_TRIES} times")

    def _has_new_ids(self, base: Base) -> bool:
        """Return whether rows that are copied got ids since; they do after an upgrade."""
        parent = added_snapshots.current(self.opened.document)
        if not lineage.is_kept(self.version) or parent is None:
            return False
        is_next = parent["snapshot-id"] == base.snapshot_id
        return not is_next and any(each.first_row_id is None for each in self._replaced.values())

    def _refuse_conflict(self, what: str) -> None:
        self._delete_files()
        again = "; run the statement again"
        raise self.failed(f"another writer changed {what} meanwhile", again)

    def _is_committed(
        self,
        catalog: catalogs.CommittingCatalog,
        added: AddedSnapshot,
        manifests: Sequence[Mapping[str, Any]],
    ) -> bool:
        """Try to commit; False: the table has moved on."""
        snapshot = self._snapshot(added, manifests)
        try:
            is_committed = catalog.commit(self.opened, snapshot)
        except LostCommitError as exc:
            self._look_up(exc)
            return True
        if not is_committed:
            for location in (snapshot["manifest-list"], *self._rewritten):
                self._metadata.delete_file(location)
        return is_committed

    def _snapshot(
        self, added: AddedSnapshot, manifests: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """Return the snapshot as one that follows the current one, with its list written."""
        document = self.opened.document
        parent = added_snapshots.current(document)
        before = b"" if parent is None else self._list_before(parent)
        listed = ListedSnapshot(
            self.version,
            added.id,
            None if parent is None else parent["snapshot-id"],
            added_snapshots.next_sequence_number(document),
            added_snapshots.next_row_id(document),
        )
        try:
            manifests_before = added_lists.records(before) if before else []
            keeping = KeptManifests(self.opened.files, self._metadata)
            self._rewritten = keeping.made
            kept, removed = keeping.without(manifests_before, self._replaced, listed)
            made = added_lists.manifest_list(listed, kept, manifests)
        except DatasetError:
            raise
        # fastavro raises many kinds of exceptions for damaged files.
        except Exception as exc:
            raise DatasetError("invalid", "its manifest list, or a manifest, is damaged") from exc
        name = f"snap-{added.id}-{uuid.uuid4()}.avro"
        location = self._metadata.write(io.BytesIO(made.content), name)
        now_ms = max(time.time_ns() // 1_000_000, int(document["last-updated-ms"]))
        return added.document(document, now_ms, location, made.assigned_rows, removed)

    @property
    def version(self) -> int:
        """The version of the format of the table."""
        return int(self.opened.document["format-version"])

    def _list_before(self, parent: Mapping[str, Any]) -> bytes:
        if "manifest-list" not in parent:
            raise DatasetError("unsupported", "its snapshot is one of the first format")
        return self.opened.files.place(parent["manifest-list"]).read("the manifest list")

    def _look_up(self, exc: DatasetError) -> None:
        """Raise the error of a commit whose answer is lost, unless the snapshot is there."""
        try:
            snapshots = opening.open_table(self._request).metadata.snapshots
        except DatasetError:
            snapshots = {}
        if self.snapshot_id not in snapshots:
            raise ExecutionError(
                f"{self._title}: {exc.message}, while the rows were committed; look whether they "
                "are there before you run it again"
            ) from exc

    def _manifests(self, files: Files) -> list[Mapping[str, Any]]:
        made: list[Mapping[str, Any]] = []
        for content, groups in files.items():
            for spec, of_spec in groups:
                schema = self.schema_document()
                id_ = self.snapshot_id
                written_bytes = added_manifests.manifest(
                    content, schema, spec, id_, of_spec, self.version
                )
                name = f"{uuid.uuid4()}-m{len(made)}.avro"
                location = self._metadata.write(io.BytesIO(written_bytes), name)
                place = (location, len(written_bytes))
                made.append(added_manifests.listed(content, spec, id_, of_spec, place))
        return made
