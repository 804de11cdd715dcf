"""Notices that a file of a table is gone before it is read.

DataFusion takes a single file that does not exist for a folder without files, so a query over it
would answer as if the table were empty.
"""

import os
import re
from collections.abc import Iterable, Mapping

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.tables import FilesTable, TableSpec

_SCAN = re.compile(r"TableScan: ([^\s]+)")


def tables_read(plan: str) -> frozenset[str]:
    """Return the names in the table scans of a plan's text."""
    return frozenset(_SCAN.findall(plan))


def local_files(names: Iterable[str], tables: Mapping[TableName, TableSpec]) -> dict[str, str]:
    """Return the single local files behind the named tables, and the table of each."""
    found: dict[str, str] = {}
    for name in names:
        bare = name.removeprefix("caraway.").removeprefix("public.")
        spec = tables.get(TableName(bare))
        if isinstance(spec, FilesTable):
            for scan in spec.scans:
                if scan.store is None:
                    found.update((path, bare) for path in scan.paths if not path.endswith("/"))
    return found


def check(files: Mapping[str, str]) -> None:
    """Look whether the files are still there.

    Raises:
        ExecutionError: one is not.
    """
    for path, table in files.items():
        if not os.path.exists(path) and not _is_glob(path):
            raise ExecutionError(
                f"dataset '{table}': its file '{path}' is gone; put it back, or change the "
                "dataset in the manifest"
            )


def _is_glob(path: str) -> bool:
    return any(char in path for char in "*?[")
