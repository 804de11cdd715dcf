"""Manifests and manifest lists that other programs wrote: the files of a snapshot."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
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

    @property
    def is_data(self) -> bool:
        return self.content == _DATA

    @property
    def is_of_positions(self) -> bool:
        return self.content == _POSITIONS

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
    return [
        _file(each["data_file"], each, listed)
        for each in _records(content)
        if each["status"] != _DELETED
    ]


def _file(found: Mapping[str, Any], entry: Mapping[str, Any], listed: ListedManifest) -> ListedFile:
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
    )


def _by_id(pairs: Sequence[Mapping[str, Any]] | None) -> dict[int, Any]:
    return {each["key"]: each["value"] for each in pairs or ()}


def _plain(records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in records:
        if each.get("key_metadata"):
            raise EncryptedFileError("its manifests are encrypted")
        yield each


def _records(content: bytes) -> Iterator[dict[str, Any]]:
    return iter(fastavro.reader(io.BytesIO(content)))
