"""Plans scans on the server: the files of a table, or rows that executors export for one scan."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caraway_core.errors import InvalidRequestError
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.statements import Statement
from caraway_core.tables import ResultPlace
from caraway_plugins.iceberg import column_types, planned
from caraway_plugins.stores.published import Published
from caraway_scheduler.iceberg import exporting, filters

FOLDER = "plans"
"""Has the exports of scans, which are deleted as replaced states are."""
_MOST_AT_ONCE = 4
_MOST_COLUMNS = 10_000


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What a client reads of a table: columns, or None for all, and a filter, or None.

    `snapshot_id` names an earlier snapshot; None: the current rows.
    """

    select: tuple[str, ...] | None = None
    filter: Any = None
    is_case_sensitive: bool = True
    snapshot_id: int | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ScanRequest:
        """Read the body of a request.

        Raises:
            InvalidRequestError: it has no form of the protocol, or asks for what is not served.
        """
        for key in ("start-snapshot-id", "end-snapshot-id"):
            if document.get(key) is not None:
                raise InvalidRequestError(f"'{key}': scans of changes are not served")
        select = document.get("select")
        if select is not None and not _are_names(select):
            raise InvalidRequestError("'select' must be a list of names")
        wanted = document.get("filter")
        if wanted is not None:
            filters.columns(wanted)
        is_exact = document.get("case-sensitive", True) is not False
        at = document.get("snapshot-id")
        if at is not None and not (isinstance(at, int) and not isinstance(at, bool)):
            raise InvalidRequestError("'snapshot-id' must be an integer")
        return cls(tuple(select) if select is not None else None, wanted, is_exact, at)


class ScanExports:
    """Exports what scans read, some at a time."""

    def __init__(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch
        self._running = asyncio.Semaphore(_MOST_AT_ONCE)

    async def plan(
        self,
        name: TableName,
        columns: pa.Schema,
        request: ScanRequest,
        at: ResultPlace,
        place: Published,
    ) -> list[dict[str, Any]]:
        """Export the rows of a scan, and return the tasks that read them.

        Raises:
            InvalidRequestError: the request names a column that the table lacks.
            QueryError: the statement failed, or its rows cannot be stored.
        """
        statement = Statement(sql(name, columns, request), {}, in_background=True)
        folder = f"{FOLDER}/{uuid.uuid4().hex}"
        async with self._running:
            table = await exporting.export(self._dispatch, statement, at, folder)
        return [
            planned.written(place.location(file.name), file.size_bytes, file.row_count)
            for file in table.files
        ]


def sql(name: TableName, columns: pa.Schema, request: ScanRequest) -> str:
    """Return the statement that reads what a client asks for.

    Raises:
        InvalidRequestError: the request names a column that the table lacks.
    """
    names = _names(columns, request)
    kinds = {each.name: column_types.kind(each.type) for each in columns}
    known = {name: kind for name, kind in kinds.items() if kind is not None}
    condition = filters.condition(request.filter, known) if request.filter is not None else ""
    selected = ", ".join(map(filters.quoted, names))
    where = f" WHERE {condition}" if condition else ""
    return f"SELECT {selected} FROM {exporting.quoted(name)}{where}"


def _names(columns: pa.Schema, request: ScanRequest) -> list[str]:
    """Return the columns that a client needs, also those of its filter, in the table's order."""
    if request.select is None:
        return list(columns.names)
    wanted = {*request.select, *(filters.columns(request.filter) if request.filter else ())}
    spelled = {each if request.is_case_sensitive else each.lower(): each for each in columns.names}
    found = set()
    for each in wanted:
        key = each if request.is_case_sensitive else each.lower()
        own = spelled.get(key) or spelled.get(key.partition(".")[0])
        if own is None:
            raise InvalidRequestError(f"there is no column '{each[:100]}'")
        found.add(own)
    return [each for each in columns.names if each in found] or list(columns.names[:1])


def _are_names(select: Any) -> bool:
    return (
        isinstance(select, list)
        and len(select) <= _MOST_COLUMNS
        and all(isinstance(each, str) for each in select)
    )
