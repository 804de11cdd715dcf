"""Makes the plan of a fragment read shares of tables instead of whole tables.

The checks are strict. A plan is refused if a scan's table is ambiguous. It is also refused if the
engine answered from the statistics of whole files.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath

from datafusion import ExecutionPlan, SessionContext

from caraway_core.errors import ExecutionError, NotDistributableError
from caraway_core.ids import TableName
from caraway_core.pieces import FileRange
from caraway_core.protocols.fleet import Share
from caraway_core.tables import TableSpec
from caraway_engine.sharing import file_leaves
from caraway_engine.sharing.file_leaves import FilesChangedError, Leaf
from caraway_engine.sharing.shares import ListedPiece
from caraway_engine.statements import wire

_COALESCE = 13
_INPUT = 1
_LOCAL = "file://"


@dataclass(frozen=True, slots=True)
class RestrictedPlan:
    """A physical plan that reads shares only, and the message that it was read from."""

    message: bytes
    plan: ExecutionPlan


@dataclass(frozen=True, slots=True)
class Root:
    """A location of a table's files: a folder, which ends in `/`, or one file."""

    path: str

    def holds(self, path: str) -> bool:
        """Return whether a path is this file or inside this folder."""
        return path.startswith(self.path) if self.path.endswith("/") else path == self.path


def roots(spec: TableSpec) -> tuple[Root, ...]:
    """Return the locations of a table's files, as the engine names them."""
    return tuple(
        Root(path if scan.store else _LOCAL + path) for scan in spec.scans for path in scan.paths
    )


def unread(table: TableName) -> ExecutionError:
    """Return the error for a share of a table that the fragment does not read."""
    return ExecutionError(
        f"a task has a share of dataset '{table}', which its fragment does not read; "
        "this is a bug in the planner: please report it"
    )


def file_leaves_of(plan: ExecutionPlan) -> Iterator[Leaf]:
    """Yield the file scans of a physical plan.

    Raises:
        ValueError: a scan cannot be parsed.
    """
    for child in plan.children():
        yield from file_leaves_of(child)
    if plan.display().startswith("DataSourceExec: file_groups"):
        yield file_leaves.read(plan.to_bytes())


def listed(plan: ExecutionPlan, spec: TableSpec) -> tuple[ListedPiece, ...] | None:
    """List the files that a plan reads of one table, or None if some are outside its locations."""
    found: dict[str, ListedPiece] = {}
    for leaf in file_leaves_of(plan):
        if not all(any(root.holds(path) for root in roots(spec)) for path in leaf.paths):
            return None
        for file in chain.from_iterable(leaf.groups):
            can_split = leaf.format == "parquet"
            found[file.path] = ListedPiece(file.path, file.size_bytes, can_split)
    return tuple(found.values())


class Sharing:
    """The shares of one task, applied to the tables that its fragment reads.

    `reads` has the number of times that the fragment reads each name, and `tables` their specs. A
    view is expanded, so its reads of a shared table are reads of the share.

    Raises:
        ExecutionError: the fragment does not read a table that has a share.
    """

    def __init__(
        self,
        shares: Iterable[Share],
        reads: Mapping[TableName, int],
        tables: Mapping[TableName, TableSpec],
    ) -> None:
        self._pieces: dict[TableName, dict[str, list[FileRange]]] = {}
        for share in shares:
            by_path = self._pieces.setdefault(share.table, {})
            for piece in _ranges(share):
                by_path.setdefault(piece.path, []).append(piece)
        self._expected = {name: reads.get(name, 0) for name in self._pieces}
        self._tables = tables
        self._roots = {name: roots(spec) for name, spec in tables.items()}
        for name, count in self._expected.items():
            if not count:
                raise unread(name)

    def restrict(
        self, plan: ExecutionPlan, context: SessionContext, *, is_measured: bool
    ) -> RestrictedPlan | None:
        """Return the plan with one partition, reading shares only.

        Returns None if the plan depends on statistics of whole files; it must then be planned
        without them. `is_measured` says whether the engine had statistics.

        Raises:
            ExecutionError: files have changed since the shares were made.
            NotDistributableError: the plan cannot be restricted; the statement can run whole.
        """
        try:
            owned = [(leaf, self._owner(leaf)) for leaf in file_leaves_of(plan)]
            shared = [(leaf, owner) for leaf, owner in owned if owner in self._pieces]
            if is_measured and not self._is_unaffected(shared):
                return None
            self._check_present(shared)
            message = plan.to_bytes()
            for leaf, owner in {leaf.message: (leaf, owner) for leaf, owner in shared}.values():
                new = file_leaves.restricted(leaf, self._pieces[owner])
                message = wire.replaced(message, leaf.message, new)
            if plan.partition_count > 1:
                message = wire.message(_COALESCE, wire.message(_INPUT, message))
            return RestrictedPlan(message, ExecutionPlan.from_bytes(context, message))
        except FilesChangedError as exc:
            raise ExecutionError(
                f"the files of a dataset cannot be divided: {exc}; run the query again"
            ) from exc
        except Exception as exc:  # The engine also refuses plans that are nested too deeply.
            cause = str(exc).splitlines()[0][:200]
            raise NotDistributableError(
                f"the files of a dataset cannot be divided: {cause}"
            ) from exc

    def _is_unaffected(self, shared: Sequence[tuple[Leaf, TableName]]) -> bool:
        """Return whether every read is in the plan and none has a limit, which skips files."""
        counter = Counter(owner for _, owner in shared)
        return counter == self._expected and not any(leaf.has_limit for leaf, _ in shared)

    def _check_present(self, shared: Sequence[tuple[Leaf, TableName]]) -> None:
        """Check that the files of the shares still exist.

        A scan also leaves out files whose partition values do not match; these are not missing.
        """
        for leaf, owner in shared:
            gone = self._pieces[owner].keys() - leaf.paths
            if gone and not _is_partitioned(self._tables[owner]):
                raise FilesChangedError(f"'{PurePath(min(gone)).name}' is missing")
        for pieces in self._pieces.values():
            for path in pieces:
                if path.startswith(_LOCAL) and not os.path.exists(path.removeprefix(_LOCAL)):
                    raise FilesChangedError(f"'{PurePath(path).name}' is missing")

    def _owner(self, leaf: Leaf) -> TableName:
        owners = [
            name
            for name, held in self._roots.items()
            if all(any(root.holds(path) for root in held) for path in leaf.paths)
        ]
        if len(owners) == 1:
            return owners[0]
        if owners and not self._pieces.keys() & owners:
            return owners[0]
        what = "belong to several datasets" if owners else "belong to no dataset of the query"
        raise ValueError(f"files such as '{min(leaf.paths, default='')}' {what}")


def _ranges(share: Share) -> tuple[FileRange, ...]:
    ranges = tuple(piece for piece in share.pieces if isinstance(piece, FileRange))
    if len(ranges) < len(share.pieces):
        raise ExecutionError(
            f"a share of dataset '{share.table}' is not one of files; this is a fault of the "
            "planner: please report it"
        )
    return ranges


def _is_partitioned(spec: TableSpec) -> bool:
    return any(scan.partition_columns for scan in spec.scans)
