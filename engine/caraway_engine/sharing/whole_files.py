"""Reads shares that consist of whole files as tables of their own.

A plan over such a table keeps file statistics and dynamic filters, and its inputs stay in place.
Shares that begin or end inside a file are handled by `sharing` instead.
"""

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePath
from threading import Lock

from datafusion import SessionContext
from datafusion.catalog import Table

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.protocols.fleet import Piece, Share
from caraway_core.tables import FilesTable, MemoryTable, RemoteTable, StoredTable, TableSpec
from caraway_engine.scans import tables
from caraway_engine.sharing import renaming, sharing

_CACHED_TABLES = 256
_LOCAL = "file://"


@dataclass(frozen=True, slots=True)
class NarrowedFragment:
    """A fragment, and the tables that it reads by the names in it."""

    fragment: bytes
    tables: Mapping[str, Table]


class WholeFiles:
    """Makes tables from shares, and caches the most recent ones."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[TableName, tuple[str, ...]], Table] = OrderedDict()
        self._lock = Lock()

    def narrowed(
        self, fragment: bytes, shares: Sequence[Share], specs: Mapping[TableName, TableSpec]
    ) -> NarrowedFragment | None:
        """Make a fragment read tables of its shares, or return None if that may be incorrect."""
        if not shares or not all(_is_whole(share, specs.get(share.table)) for share in shares):
            return None
        names = {share.table: _name(share.table) for share in shares}
        renamed = renaming.renamed(fragment, names)
        # A view may read a shared table, and an unread share is an error. `sharing` handles both.
        if names.keys() - renamed.read or not all(_is_plain(specs.get(n)) for n in renamed.left):
            return None
        made = {_name(share.table): self._table(share, specs[share.table]) for share in shares}
        if any(table.kind == "view" for table in made.values()):
            return None  # The engine cannot project the columns of a view in a fragment's read.
        return NarrowedFragment(renamed.fragment, made)

    def _table(self, share: Share, spec: TableSpec) -> Table:
        assert isinstance(spec, FilesTable | RemoteTable)
        paths = tuple(piece.path.removeprefix(_LOCAL) for piece in share.pieces)
        key = share.table, paths
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        if isinstance(spec, RemoteTable):
            table = _of_splits(spec, paths)
        else:
            table = tables.build_table(_of_paths(spec, paths))
        with self._lock:
            self._made[key] = table
            if len(self._made) > _CACHED_TABLES:
                self._made.popitem(last=False)
        return table


def check_present(
    shares: Sequence[Share], made: Mapping[str, Table], context: SessionContext
) -> None:
    """Check that every file still exists unchanged: the engine reads a missing file as empty.

    Raises:
        ExecutionError: a file is missing or has another size.
    """
    for share in shares:
        if all(piece.path.startswith(_LOCAL) for piece in share.pieces):
            found = {piece.path: _size(piece.path) for piece in share.pieces}
        else:
            # Do not use the fragment's plan: a filter may have removed the whole scan.
            plan = context.read_table(made[_name(share.table)]).execution_plan()
            files = (chain.from_iterable(leaf.groups) for leaf in sharing.file_leaves_of(plan))
            found = {file.path: file.size_bytes for file in chain.from_iterable(files)}
        for piece in share.pieces:
            if found.get(piece.path) != piece.size_bytes:
                raise _changed(share.table, piece, found.get(piece.path))


def _changed(table: TableName, piece: Piece, size_bytes: int | None) -> ExecutionError:
    # Users must not see server paths, so name only the file.
    what = f"dataset '{table}': '{PurePath(piece.path).name}'"
    if size_bytes is None:
        return ExecutionError(f"{what} is missing; run the query again")
    return ExecutionError(
        f"{what} has {size_bytes} bytes, and had {piece.size_bytes} "
        "when the query was planned; run the query again"
    )


def _size(path: str) -> int | None:
    try:
        return os.stat(path.removeprefix(_LOCAL)).st_size
    except OSError:
        return None


def _name(table: TableName) -> str:
    return f"share of {table}"


def _is_plain(spec: TableSpec | None) -> bool:
    return isinstance(spec, FilesTable | RemoteTable | StoredTable)


def _is_whole(share: Share, spec: TableSpec | None) -> bool:
    if isinstance(spec, RemoteTable):
        return True
    if not isinstance(spec, FilesTable) or len(spec.scans) != 1:
        return False
    if spec.scans[0].partition_columns:
        return False
    return all(piece.start == 0 and piece.end == piece.size_bytes for piece in share.pieces)


def _of_splits(spec: RemoteTable, names: tuple[str, ...]) -> Table:
    if not names:
        return tables.build_table(MemoryTable(spec.schema, spec.schema.empty_table()))
    from caraway_engine.remote import datasets  # pyarrow's datasets are slow to import.

    return datasets.build(spec, [each for each in spec.splits if each.name in names])


def _of_paths(spec: FilesTable, paths: tuple[str, ...]) -> FilesTable | MemoryTable:
    if not paths:
        return MemoryTable(spec.schema, spec.schema.empty_table())
    (scan,) = spec.scans
    return replace(spec, scans=(replace(scan, paths=paths),))
