"""Notices that a file of a table is gone before it is read.

DataFusion takes a single file that does not exist for a folder without files, so a query over it
would answer as if the table were empty.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.tables import FilesTable, TableSpec

_SCAN = re.compile(r"TableScan: ([^\s,]+)")


def tables_read(plan: str) -> frozenset[str]:
    """Return the names in the table scans of a plan's text."""
    return frozenset(_SCAN.findall(plan))


def bare(name: str) -> TableName:
    """Return the name of a table in the catalog for its name in a plan."""
    return TableName(name.removeprefix("caraway.").removeprefix("public."))


@dataclass(frozen=True, slots=True)
class SingleFiles:
    """What must be there for a statement: local files with their tables, and remote tables."""

    local: Mapping[str, TableName]
    remote: frozenset[TableName]


def single_files(names: Iterable[str], tables: Mapping[TableName, TableSpec]) -> SingleFiles:
    """Find the tables, among the named, that are read from files instead of folders."""
    local: dict[str, TableName] = {}
    remote: set[TableName] = set()
    for name in names:
        table = bare(name)
        spec = tables.get(table)
        for scan in spec.scans if isinstance(spec, FilesTable) else ():
            paths = [path for path in scan.paths if not path.endswith("/")]
            if scan.store is None:
                local.update((path, table) for path in paths)
            elif paths:
                remote.add(table)
    return SingleFiles(local, frozenset(remote))


def check(files: SingleFiles, plan: Callable[[TableName], str]) -> None:
    """Look whether the files are still there; `plan` words the physical plan of a whole table.

    Raises:
        ExecutionError: one is not.
    """
    for path, table in files.local.items():
        if not os.path.exists(path) and not _is_glob(path):
            raise _gone(table, f"its file '{path}' is gone")
    for table in files.remote:
        # A table of which every file is there has a scan for each; what is gone leaves this.
        if "EmptyExec" in plan(table):
            raise _gone(table, "a file of it is gone from the object store")


def _gone(table: TableName, what: str) -> ExecutionError:
    return ExecutionError(
        f"dataset '{table}': {what}; put it back, or change the dataset in the manifest"
    )


def _is_glob(path: str) -> bool:
    return any(char in path for char in "*?[")
