"""Finds the metadata of a table that is not in a catalog: by a folder, or by a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from caraway_core.errors import DatasetError
from caraway_plugins.sources.iceberg.locations import FilePlace
from caraway_plugins.sources.storage import FoundFile, Storage

_NAME = re.compile(r"(?:v(\d+)|(\d+)-[^/]+)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_HINT = "version-hint.text"
_MOST_AHEAD = 1_000


@dataclass(frozen=True, slots=True)
class FoundMetadata:
    """A file of metadata, and the folder of its table; None if that is not known."""

    place: FilePlace
    folder: str | None


def find(root: FilePlace) -> FoundMetadata:
    """Find the newest metadata of a table.

    Raises:
        DatasetError: there is no table, or several files are the newest ones.
    """
    if root.path.endswith((".json", ".json.gz")):
        folder, _, name = root.path.rpartition("/")
        is_inside = folder.rpartition("/")[2] == "metadata" and bool(name)
        return FoundMetadata(root, folder.rpartition("/")[0] if is_inside else None)
    folder = root.path.rstrip("/")
    path = _hinted(root.storage, folder) or _listed(root.storage, folder)
    return FoundMetadata(FilePlace(root.storage, path), folder)


def _hinted(storage: Storage, folder: str) -> str | None:
    """Return the newest file of a folder whose writers count versions, as Hadoop's do."""
    inside = _inside(folder)
    hint = storage.find(f"{inside}{_HINT}")
    if hint is None or hint.size_bytes > 64:
        return None
    text = storage.read(hint.path, 0, hint.size_bytes).decode(errors="replace").strip()
    if not (text.isascii() and text.isdigit()):
        return None
    newest = None
    # A writer replaces the hint after the file, and may have been stopped in between.
    for version in range(int(text), int(text) + _MOST_AHEAD):
        following = _versioned(storage, inside, version)
        if following is None:
            break
        newest = following
    return newest


def _versioned(storage: Storage, inside: str, version: int) -> str | None:
    for ending in (".metadata.json", ".gz.metadata.json", ".metadata.json.gz"):
        if file := storage.find(f"{inside}v{version}{ending}"):
            return file.path
    return None


def _listed(storage: Storage, folder: str) -> str:
    """Return the file with the highest number in its name."""
    title = storage.title(folder)
    numbered = sorted(_numbers(_files(storage, folder, title)))
    if not numbered:
        raise DatasetError(
            "not_found",
            f"'{title}' is not an Iceberg table: it has no metadata file in 'metadata'",
        )
    newest = [path for number, path in numbered if number == numbered[-1][0]]
    if len(newest) > 1:
        names = " and ".join(f"'{each.rpartition('/')[2]}'" for each in newest[:2])
        raise DatasetError(
            "invalid",
            f"'{title}' has several newest metadata files, {names}; name one in `from`, or the "
            "catalog of the table",
        )
    return newest[0]


def _files(storage: Storage, folder: str, title: str) -> list[FoundFile]:
    try:
        return list(storage.listing(_inside(folder)))
    except DatasetError as exc:
        if exc.type != "not_found":
            raise
        message = f"'{title}' is not an Iceberg table: it has no folder 'metadata'"
        raise DatasetError("not_found", message) from exc


def _numbers(files: Iterable[FoundFile]) -> Iterable[tuple[int, str]]:
    for each in files:
        if match := _NAME.fullmatch(each.path.rpartition("/")[2]):
            yield int(match[1] or match[2]), each.path


def _inside(folder: str) -> str:
    return f"{folder}/metadata/" if folder else "metadata/"
