"""Manifests and manifest lists that other programs wrote: the files of a snapshot."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import fastavro

_DELETED = 2
_DATA, _POSITIONS, _EQUALITY = 0, 1, 2
PATH_ID = 2147483546
"""The id of the column `file_path` of files of positions."""


class EncryptedFileError(ValueError):
    """A file that is encrypted."""


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """A manifest, as its list names it."""

    location: str
    size_bytes: int | None = None
    sequence_number: int = 0
    spec_id: int = 0
    first_row_id: int | None = None
    """The first id of rows that its files give out, from version 3 of the format on."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a snapshot: of data, or of rows that are deleted."""

    content: int
    location: str
    format: str
    row_count: int
    size_bytes: int
    sequence_number: int
    spec_id: int
    partition: tuple[Any, ...]
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    lower: Mapping[int, bytes] = field(default_factory=dict)
    upper: Mapping[int, bytes] = field(default_factory=dict)
    equality_ids: tuple[int, ...] = ()
    referenced: str | None = None
    manifest: str = ""
    """The location of its manifest."""
    first_row_id: int | None = None
    """The id of its first row, from version 3 of the format on."""
    vector_at: int | None = None
    vector_bytes: int | None = None
    """Where a file has the vector of deleted rows, and how long it is there."""

    @property
    def is_data(self) -> bool:
        return self.content == _DATA

    @property
    def is_of_positions(self) -> bool:
        return self.content == _POSITIONS

    @property
    def is_vector(self) -> bool:
        return self.is_of_positions and self.format == "puffin"

    @property
    def only_file(self) -> str | None:
        """The data file that the positions are of, if they are of one alone."""
        if self.referenced is not None:
            return self.referenced
        lower, upper = self.lower.get(PATH_ID), self.upper.get(PATH_ID)
        # Bounds that were shortened differ.
        return lower.decode(errors="replace") if lower and lower == upper else None


def manifest_list(content: bytes) -> list[ListedManifest]:
    """Return the manifests of a list.

    Raises:
        EncryptedFileError: a manifest is encrypted.
        LookupError, TypeError, ValueError, EOFError: the list is cut or damaged.
    """
    return [
        ListedManifest(
            each["manifest_path"],
            each.get("manifest_length"),
            each.get("sequence_number") or 0,
            each.get("partition_spec_id") or 0,
            each.get("first_row_id"),
        )
        for each in _plain(_records(content))
    ]


def manifest(content: bytes, listed: ListedManifest) -> list[ListedFile]:
    """Return the files of a manifest that belong to the snapshot.

    Raises:
        EncryptedFileError: a file is encrypted.
        LookupError, TypeError, ValueError, EOFError: the manifest is cut or damaged.
    """
    # A file that was cut between two blocks could be read.
    if listed.size_bytes is not None and len(content) != listed.size_bytes:
        raise EOFError(f"it has {len(content)} bytes, and had {listed.size_bytes}")
    entries = [each for each in _records(content) if each["status"] != _DELETED]
    ids = first_row_ids((each["data_file"] for each in entries), listed.first_row_id)
    return [_file(each, listed, id_) for each, id_ in zip(entries, ids, strict=True)]


def first_row_ids(
    data_files: Iterable[Mapping[str, Any]], first: int | None
) -> Iterator[int | None]:
    """Yield the first id of the rows of each file of a manifest that is not gone.

    `first` is that of the manifest; files without an own one follow each other from there.
    """
    for each in data_files:
        own = each.get("first_row_id")
        if first is None or own is not None:
            yield None if first is None else own
            continue
        yield first
        first += each["record_count"]


def _file(entry: Mapping[str, Any], listed: ListedManifest, first_row_id: int | None) -> ListedFile:
    found = entry["data_file"]
    if found.get("key_metadata"):
        raise EncryptedFileError("its files are encrypted")
    # An entry without a number was added with its manifest.
    own = entry.get("sequence_number")
    if (content := found.get("content") or _DATA) not in (_DATA, _POSITIONS, _EQUALITY):
        raise ValueError(f"a file has the unknown content {content}")
    return ListedFile(
        content,
        found["file_path"],
        found["file_format"].lower(),
        found["record_count"],
        found["file_size_in_bytes"],
        listed.sequence_number if own is None else own,
        listed.spec_id,
        tuple((found.get("partition") or {}).values()),
        _by_id(found.get("column_sizes")),
        _by_id(found.get("lower_bounds")),
        _by_id(found.get("upper_bounds")),
        tuple(found.get("equality_ids") or ()),
        found.get("referenced_data_file"),
        listed.location,
        first_row_id,
        found.get("content_offset"),
        found.get("content_size_in_bytes"),
    )


def _by_id(pairs: Sequence[Mapping[str, Any]] | None) -> dict[int, Any]:
    return {each["key"]: each["value"] for each in pairs or ()}


def _plain(records: Iterator[dict[str, object]]) -> Iterator[dict[str, Any]]:
    for each in records:
        if each.get("key_metadata"):
            raise EncryptedFileError("its manifests are encrypted")
        yield each


def _records(content: bytes) -> Iterator[dict[str, Any]]:
    return iter(fastavro.reader(io.BytesIO(content)))
