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
from caraway_core.pieces import FileRange, Piece, SplitPiece
from caraway_core.protocols.fleet import Share
from caraway_core.tables import FilesTable, MemoryTable, TableSpec
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
        self._made: OrderedDict[tuple[TableName, tuple[Piece, ...]], Table] = OrderedDict()
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
        key = share.table, share.pieces
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        table = _made(spec, share)
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
        pieces = [piece for piece in share.pieces if isinstance(piece, FileRange)]
        if all(piece.path.startswith(_LOCAL) for piece in pieces):
            found = {piece.path: _size(piece.path) for piece in pieces}
        else:
            # Do not use the fragment's plan: a filter may have removed the whole scan.
            plan = context.read_table(made[_name(share.table)]).execution_plan()
            files = (chain.from_iterable(leaf.groups) for leaf in sharing.file_leaves_of(plan))
            found = {file.path: file.size_bytes for file in chain.from_iterable(files)}
        for piece in pieces:
            if found.get(piece.path) != piece.size_bytes:
                raise _changed(share.table, piece, found.get(piece.path))


def _changed(table: TableName, piece: FileRange, size_bytes: int | None) -> ExecutionError:
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
    return spec is not None and spec.query is None and spec.first_rows is None


def _is_whole(share: Share, spec: TableSpec | None) -> bool:
    if spec is not None and spec.splits:
        return all(isinstance(each, SplitPiece) for each in share.pieces)
    if spec is None or len(spec.scans) != 1:
        return False
    if spec.scans[0].partition_columns:
        return False
    return all(isinstance(each, FileRange) and each.is_whole for each in share.pieces)


def _made(spec: TableSpec, share: Share) -> Table:
    """Make a table of the files or of the splits of a share."""
    splits = [piece.split for piece in share.pieces if isinstance(piece, SplitPiece)]
    paths = [piece.path for piece in share.pieces if isinstance(piece, FileRange)]
    if splits:
        return tables.build_table(spec, splits)
    if not paths:
        return tables.build_table(MemoryTable(spec.schema, spec.schema.empty_table()))
    (scan,) = spec.scans
    only = replace(scan, paths=tuple(path.removeprefix(_LOCAL) for path in paths))
    return tables.build_table(FilesTable(spec.schema, (only,)))
