"""Notices that a file of a table is gone before it is read.

DataFusion takes a single file that does not exist for a folder without files, so a query over it
would answer as if the table were empty.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from datafusion import ExecutionPlan

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.tables import TableSpec

_NOTHING = "EmptyExec"


@dataclass(frozen=True, slots=True)
class SingleFiles:
    """What must be there for a statement: local files with their tables, and remote tables."""

    local: Mapping[str, TableName]
    remote: frozenset[TableName]


def single_files(names: Iterable[TableName], tables: Mapping[TableName, TableSpec]) -> SingleFiles:
    """Find the tables, among the named, that are read from files instead of folders."""
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


def check(files: SingleFiles, plan: Callable[[TableName], ExecutionPlan]) -> None:
    """Check that the files are still there; `plan` makes the physical plan of a whole table.

    Raises:
        ExecutionError: one is not.
    """
    for path, table in files.local.items():
        if not os.path.exists(path) and not _is_glob(path):
            raise _gone(table, f"its file '{PurePath(path).name}' is gone")
    for table in files.remote:
        # A table of which every file is there has a scan for each; what is gone leaves this.
        if _reads_nothing(plan(table)):
            raise _gone(table, "a file of it is gone from the object store")


def _reads_nothing(plan: ExecutionPlan) -> bool:
    """Tell if a node of a physical plan has no rows; what a node displays begins with its name."""
    return plan.display().startswith(_NOTHING) or any(map(_reads_nothing, plan.children()))


def _gone(table: TableName, what: str) -> ExecutionError:
    return ExecutionError(
        f"dataset '{table}': {what}; put it back, or change the dataset in the manifest"
    )


def _is_glob(path: str) -> bool:
    return any(char in path for char in "*?[")
