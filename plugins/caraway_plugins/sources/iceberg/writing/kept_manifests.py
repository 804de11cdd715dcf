"""The manifests of a snapshot in the one after it: without replaced files, and with counts."""

from __future__ import annotations

import io
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from caraway_core.errors import DatasetError
from caraway_plugins.iceberg import added_lists, replaced_files
from caraway_plugins.iceberg.added_lists import ListedSnapshot
from caraway_plugins.iceberg.read_manifests import ListedFile
from caraway_plugins.iceberg.replaced_files import RemovedFiles
from caraway_plugins.sources.iceberg.locations import TableFiles
from caraway_plugins.sources.iceberg.writing.row_files import TablePlace

Record = Mapping[str, Any]


class KeptManifests:
    """What lists say of the manifests that a write keeps. Manifests are read if that is needed."""

    def __init__(self, files: TableFiles, metadata: TablePlace) -> None:
        """Take what finds the files of a table, and the place of manifests that are made."""
        self._files, self._metadata = files, metadata
        self.made: list[str] = []
        """The locations of the manifests that are rewritten."""

    def without(
        self, before: Sequence[Record], replaced: Mapping[str, ListedFile], snapshot: ListedSnapshot
    ) -> tuple[Sequence[Record], RemovedFiles]:
        """Return the manifests for a snapshot without some files, which are known by location.

        Raises:
            DatasetError: a manifest cannot be read, or none has one of the files.
        """
        kept = {each["manifest_path"]: each for each in before}
        removed, left = RemovedFiles(), set(replaced)
        for each in _likely_first(before, replaced.values()):
            if not any(_may_have(each, replaced[location]) for location in left):
                continue
            made = replaced_files.rewritten(self._content(each), each, left, snapshot)
            if made is None:
                continue
            name = f"{uuid.uuid4()}-r{len(self.made)}.avro"
            location = self._metadata.write(io.BytesIO(made.content), name)
            self.made.append(location)
            kept[each["manifest_path"]] = {**made.listed, "manifest_path": location}
            removed += made.removed
            left -= made.paths
        if left:
            raise DatasetError("invalid", "its manifests lack files whose rows are changed")
        return [self._counted(each, snapshot.version) for each in kept.values()], removed

    def _counted(self, record: Record, version: int) -> Record:
        """Return what a list says with its counts, which it need not have in the first version."""
        if version == 1 or not added_lists.lacks_counts(record):
            return record
        return {**record, **replaced_files.counts(self._content(record))}

    def _content(self, record: Record) -> bytes:
        return self._files.place(record["manifest_path"]).read("a manifest")


def _likely_first(before: Sequence[Record], replaced: Sequence[ListedFile] | Any) -> list[Record]:
    """Return manifests, first those that had the files; another writer may have merged them."""
    had = {each.manifest for each in replaced}
    return sorted(before, key=lambda each: each["manifest_path"] not in had)


def _may_have(record: Record, file: ListedFile) -> bool:
    is_of_data = not record.get("content")
    return is_of_data and (record.get("partition_spec_id") or 0) == file.spec_id
