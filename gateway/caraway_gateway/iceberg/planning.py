"""Requests of clients for planned scans, and the statements that read their rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caraway_core.errors import InvalidRequestError
from caraway_core.ids import TableName
from caraway_gateway.iceberg import exporting, filters
from caraway_plugins.iceberg import column_types

_MOST_COLUMNS = 10_000


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """The part of a table that a client reads: columns or None for all, a filter or None.

    `snapshot_id` names an earlier snapshot; None: the current rows.
    """

    select: tuple[str, ...] | None = None
    filter: Any = None
    is_case_sensitive: bool = True
    snapshot_id: int | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> ScanRequest:
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
            if len(json.dumps(wanted)) > filters.MOST_BYTES:
                raise InvalidRequestError(
                    f"'filter' is too long; at most {filters.MOST_BYTES:,} bytes are taken"
                )
        is_exact = document.get("case-sensitive", True) is not False
        at = document.get("snapshot-id")
        if at is not None and not (isinstance(at, int) and not isinstance(at, bool)):
            raise InvalidRequestError("'snapshot-id' must be an integer")
        return cls(tuple(select) if select is not None else None, wanted, is_exact, at)


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


def _are_names(select: object) -> bool:
    return (
        isinstance(select, list)
        and len(select) <= _MOST_COLUMNS
        and all(isinstance(each, str) for each in select)
    )
