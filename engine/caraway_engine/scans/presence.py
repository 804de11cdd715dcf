"""Detects missing files of a table before it is read.

DataFusion treats a single file that does not exist as an empty folder. So a query over it would
return no rows instead of an error.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath

from datafusion import ExecutionPlan

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.tables import TableSpec

_NOTHING = "EmptyExec"
FileStates = tuple[tuple[str, int, int], ...]
"""The path, size and time of change of each file."""
_MOST_FILES = 256


@dataclass(frozen=True, slots=True)
class SingleFiles:
    """The files that a statement needs: local files by table, and tables in object stores."""

    local: Mapping[str, TableName]
    remote: frozenset[TableName]


def single_files(names: Iterable[TableName], tables: Mapping[TableName, TableSpec]) -> SingleFiles:
    """Return the files and tables that are read from single files instead of folders."""
    local: dict[str, TableName] = {}
    remote: set[TableName] = set()
    for table in names:
        spec = tables.get(table)
        for scan in spec.scans if spec is not None else ():
            paths = [path for path in scan.paths if not path.endswith("/")]
            if scan.store is None:
                local.update((path, table) for path in paths)
            elif paths:
                remote.add(table)
    return SingleFiles(local, frozenset(remote))


def fixed_files(
    names: Iterable[TableName], tables: Mapping[TableName, TableSpec]
) -> tuple[str, ...] | None:
    """Return the local files of tables, or None if a table may change in other ways.

    A version of an accelerated dataset never changes, and neither does the query of a view.
    """
    paths: list[str] = []
    for name in names:
        spec = tables.get(name)
        if spec is None:
            return None
        if spec.version is not None or spec.query is not None:
            continue
        if not spec.scans or any(scan.store is not None for scan in spec.scans):
            return None
        paths += (path for scan in spec.scans for path in scan.paths)
    is_single = not any(path.endswith("/") or is_glob(path) for path in paths)
    return tuple(paths) if is_single else None


def local_places(
    names: Iterable[TableName], tables: Mapping[TableName, TableSpec]
) -> tuple[str, ...] | None:
    """Return the local files and folders of tables; None if one may change in other ways.

    Returns None also for folders of which so many files were seen that `states` returns nothing.
    """
    paths: list[str] = []
    count = 0
    for name in names:
        spec = tables.get(name)
        if spec is None:
            return None
        if spec.query is not None:
            continue
        if not spec.scans or any(scan.store is not None for scan in spec.scans):
            return None
        paths += (path for scan in spec.scans for path in scan.paths)
        count += sum(scan.file_count for scan in spec.scans)
    return None if count > _MOST_FILES or any(map(is_glob, paths)) else tuple(paths)


def states(places: Iterable[str]) -> FileStates | None:
    """Return the states of local files, and of all files in local folders.

    Returns None if one is missing, or if there are so many that it takes as long as to plan.
    """
    try:
        found = [(path, os.stat(path)) for path in islice(_files(places), _MOST_FILES + 1)]
    except OSError:
        return None
    if len(found) > _MOST_FILES:
        return None
    return tuple(sorted((path, each.st_size, each.st_mtime_ns) for path, each in found))


def _files(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        if not place.endswith("/"):
            yield place
            continue
        folders = [place]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for each in entries:
                    if each.is_dir():
                        folders.append(each.path)
                    else:
                        yield each.path


def check(files: SingleFiles, plan: Callable[[TableName], ExecutionPlan]) -> None:
    """Check that the files still exist; `plan` returns the physical plan of a whole table.

    Raises:
        ExecutionError: a file is missing.
    """
    for path, table in files.local.items():
        if not os.path.exists(path) and not is_glob(path):
            raise _gone(table, f"its file '{PurePath(path).name}' is missing")
    for table in files.remote:
        # A table has a scan for each existing file; if one is missing, its plan has this node
        # instead.
        if _reads_nothing(plan(table)):
            raise _gone(table, "one of its files is missing in the object store")


def _reads_nothing(plan: ExecutionPlan) -> bool:
    """Return whether a node of a physical plan is empty; its display begins with its name."""
    return plan.display().startswith(_NOTHING) or any(map(_reads_nothing, plan.children()))


def _gone(table: TableName, what: str) -> ExecutionError:
    return ExecutionError(
        f"dataset '{table}': {what}; restore it, or change the dataset in the manifest"
    )


def is_glob(path: str) -> bool:
    """Return whether a path stands for all files that match it."""
    return any(char in path for char in "*?[")
