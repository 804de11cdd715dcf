"""Folders of Iceberg tables, as Hadoop's catalogs keep them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from caraway_core.errors import DatasetError
from caraway_plugins.sources.iceberg.locations import FilePlace

_OF_TABLE = "metadata"
"""A folder that has one of this name is a table; others are namespaces."""
_HIDDEN = (".", "_")
_READERS = 16
_MOST_LEVELS = 8
"""Links may lead to folders above them."""
Folders = tuple[str, ...]


def tables(root: FilePlace) -> Iterator[Folders]:
    """Yield the tables below a folder: the names of their folders, from there on.

    Raises:
        DatasetError: the folder is not there, or a folder cannot be listed.
    """
    base = root.path.rstrip("/")

    def inside(folders: Folders) -> Sequence[str]:
        return root.storage.folders("/".join((base, *folders)) if base else "/".join(folders))

    level: list[Folders] = [()]
    with ThreadPoolExecutor(_READERS, "warehouses") as pool:
        for _ in range(_MOST_LEVELS):
            following: list[Folders] = []
            for folders, names in zip(level, pool.map(inside, level), strict=True):
                if _OF_TABLE in names and folders:
                    yield folders
                    continue
                following += [(*folders, each) for each in sorted(names) if _is_shown(each)]
            if level == [()] and not following:
                title = root.storage.title(base)
                message = f"'{title}' has no folders of tables; check the path in `from`"
                raise DatasetError("not_found", message)
            level = following


def _is_shown(name: str) -> bool:
    """Return whether a folder may have tables; those of `key=value` have files of other tables."""
    return not name.startswith(_HIDDEN) and "=" not in name
