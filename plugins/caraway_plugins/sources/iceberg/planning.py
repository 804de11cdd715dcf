"""The files of a snapshot: data files with their columns, and the deletes that apply to each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from caraway_core.errors import DatasetError
from caraway_plugins.iceberg import read_manifests
from caraway_plugins.iceberg.read_manifests import EncryptedFileError, ListedFile, ListedManifest
from caraway_plugins.iceberg.read_metadata import NameMapping, ReadMetadata, ReadSnapshot
from caraway_plugins.sources.iceberg import columns, footers
from caraway_plugins.sources.iceberg.columns import NoIdsError, OwnField
from caraway_plugins.sources.iceberg.locations import FilePlace, TableFiles

T = TypeVar("T")
_READERS = 16


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file, and the files that delete rows of it."""

    listed: ListedFile
    place: FilePlace
    own: tuple[OwnField, ...]
    deletes: tuple[ListedFile, ...]


def plan(files: TableFiles, metadata: ReadMetadata, snapshot: ReadSnapshot) -> list[PlannedFile]:
    """Return the data files of a snapshot.

    Raises:
        DatasetError: its metadata or a file cannot be read, or has a form that is not supported.
    """
    listed = _listed(files, snapshot)
    data = [each for each in listed if each.is_data]
    applying = _Applying(metadata, [each for each in listed if not each.is_data])
    for each in (*data, *applying.used(data)):
        _check_format(each)
    places = [files.place(each.location) for each in data]
    fields = _columns(places, data, metadata.name_mapping)
    return [
        PlannedFile(each, place, own, applying.to(each))
        for each, place, own in zip(data, places, fields, strict=True)
    ]


def _listed(files: TableFiles, snapshot: ReadSnapshot) -> list[ListedFile]:
    if snapshot.manifest_list is None:
        manifests = [ListedManifest(each) for each in snapshot.manifests]
    else:
        place = files.place(snapshot.manifest_list)
        manifests = _decoded("manifest list", place, read_manifests.manifest_list)

    def read(each: ListedManifest) -> list[ListedFile]:
        place = files.place(each.location)
        return _decoded("manifest", place, lambda content: read_manifests.manifest(content, each))

    with ThreadPoolExecutor(_READERS, "manifests") as pool:
        return [each for listed_files in pool.map(read, manifests) for each in listed_files]


def _decoded(kind: str, place: FilePlace, decode: Callable[[bytes], T]) -> T:
    title = f"the {kind} '{place.path.rpartition('/')[2]}' of the table"
    content = place.read(title)
    try:
        return decode(content)
    except EncryptedFileError as exc:
        raise DatasetError("unsupported", f"the table is encrypted: {exc}") from exc
    # fastavro raises many kinds of exceptions for damaged files.
    except Exception as exc:
        message = f"{title} is cut or damaged; restore it, or roll the table back"
        raise DatasetError("invalid", message) from exc


def _columns(
    places: Sequence[FilePlace], data: Sequence[ListedFile], names: NameMapping | None
) -> list[tuple[OwnField, ...]]:
    """Return the columns of data files, from their footers. Most files have the same ones."""
    known: dict[int, tuple[OwnField, ...]] = {}
    found = footers.columns(
        [(place, each.size_bytes) for place, each in zip(places, data, strict=True)]
    )
    for place, schema in zip(places, found, strict=True):
        try:
            known[id(schema)] = known.get(id(schema)) or columns.read(schema, names)
        except NoIdsError as exc:
            name = place.path.rpartition("/")[2]
            raise DatasetError("invalid", f"file '{name}' of the table {exc}") from exc
    return [known[id(schema)] for schema in found]


def _check_format(file: ListedFile) -> None:
    if file.format == "parquet":
        return
    if file.is_vector:
        if file.referenced is None or file.vector_at is None or file.vector_bytes is None:
            raise DatasetError("invalid", "the manifests do not say where a deletion vector is")
        return
    what = "data" if file.is_data else "deletes"
    raise DatasetError(
        "unsupported",
        f"the table has {what} in {file.format} files, which are not supported; rewrite its data "
        "files as Parquet, with the rows that are deleted left out",
    )


class _Applying:
    """Finds the deletes that apply to a data file."""

    def __init__(self, metadata: ReadMetadata, deletes: Sequence[ListedFile]) -> None:
        self._everywhere: list[ListedFile] = []
        self._of_file: dict[str, list[ListedFile]] = defaultdict(list)
        self._of_partition: dict[object, list[ListedFile]] = defaultdict(list)
        for each in deletes:
            if each.is_of_positions and (only := each.only_file) is not None:
                self._of_file[only].append(each)
            elif not each.is_of_positions and not metadata.specs.get(each.spec_id, ()):
                self._everywhere.append(each)
            else:
                self._of_partition[each.spec_id, each.partition].append(each)

    def to(self, file: ListedFile) -> tuple[ListedFile, ...]:
        """Return the deletes of a data file."""
        files = (
            *self._everywhere,
            *self._of_partition.get((file.spec_id, file.partition), ()),
            *self._of_file.get(file.location, ()),
        )
        later = [each for each in files if _is_later(each, file)]
        if any(each.is_vector for each in later):
            # A vector has the positions of all files of positions before it.
            later = [each for each in later if each.is_vector or not each.is_of_positions]
        return tuple(later)

    def used(self, data: Sequence[ListedFile]) -> Iterable[ListedFile]:
        """Return the deletes that apply to any of the files."""
        return {id(each): each for file in data for each in self.to(file)}.values()


def _is_later(delete: ListedFile, file: ListedFile) -> bool:
    # Values are deleted from earlier files, positions also from files of the same commit.
    if delete.is_of_positions:
        return delete.sequence_number >= file.sequence_number
    return delete.sequence_number > file.sequence_number
