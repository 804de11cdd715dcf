"""The pages of a GraphQL query."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from caraway_core.errors import DatasetError, DatasetErrorType
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.api import pointers, table
from caraway_plugins.sources.api.calls import ApiCall, ApiPage
from caraway_plugins.sources.graphql.connections import PagedList

_TYPES: Mapping[str, DatasetErrorType] = {
    "NOT_FOUND": "not_found",
    "FORBIDDEN": "auth",
    "UNAUTHENTICATED": "auth",
    "INSUFFICIENT_SCOPES": "auth",
    "RATE_LIMITED": "unavailable",
}
_MOST_SHOWN = 300


@dataclass(frozen=True, slots=True)
class GraphqlPages:
    """The rows at a pointer of the answer, and the pages of a connection, if there is one."""

    call: ApiCall = field(repr=False)
    query: str = field(repr=False)
    pointer: str
    connection: PagedList | None = None
    unnest_depth: int = 0
    most_pages: int = table.USUAL_PAGES

    @property
    def title(self) -> str:
        return self.call.title

    def first(self, _request: RowRequest) -> ApiCall:
        return asked(self.call, self.query)

    def rows(self, _call: ApiCall, page: ApiPage) -> Sequence[Mapping[str, Any]]:
        refuse_errors(page, self.title)
        if is_null(page, self.pointer):
            return []
        rows = pointers.rows(page.value, self.pointer, self.title)
        return [pointers.unnested(each, self.unnest_depth, self.title) for each in rows]

    def next(self, call: ApiCall, page: ApiPage, rows: int) -> ApiCall | None:
        if self.connection is None:
            return None
        cursor = end_cursor(page, self.connection.pointer("pageInfo"), self.title)
        return None if cursor is None else asked(call, *self.connection.at(self.query, cursor))


def asked(call: ApiCall, query: str, variables: Mapping[str, object] | None = None) -> ApiCall:
    """Return the request with a query, and with variables if it has some."""
    body = {"query": query} | ({"variables": variables} if variables else {})
    return replace(call, body=json.dumps(body))


def is_null(page: ApiPage, pointer: str) -> bool:
    """Return whether a field on the way to a pointer is null, or the field itself."""
    value: object = page.value
    for step in pointers.steps(pointer):
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
        if value is None:
            return True
    return False


def end_cursor(page: ApiPage, pointer: str, title: str) -> str | None:
    """Return the cursor after a page whose `pageInfo` is at a pointer; None: it is the last.

    Raises:
        DatasetError: it does not say where the next page is.
    """
    if is_null(page, pointer):
        return None  # There are no rows.
    try:
        info = pointers.find(page.value, pointer)
    except LookupError:
        raise DatasetError(
            "schema", f"an answer of '{title}' has no `pageInfo` at '{pointer}'; check the query"
        ) from None
    if not isinstance(info, Mapping) or not info.get("hasNextPage"):
        return None
    cursor = info.get("endCursor")
    if not isinstance(cursor, str):
        raise DatasetError(
            "schema",
            f"an answer of '{title}' has a next page and no `endCursor` in `pageInfo`; ask for "
            "`pageInfo { hasNextPage endCursor }`",
        )
    return cursor


def refuse_errors(page: ApiPage, title: str) -> None:
    """Raise the errors that an answer with status 200 has.

    Raises:
        DatasetError: the answer has errors, also if it has data next to them.
    """
    errors = page.value.get("errors") if isinstance(page.value, Mapping) else None
    if not errors:
        return
    first = errors[0] if isinstance(errors, list) and isinstance(errors[0], Mapping) else {}
    extensions = first.get("extensions")
    code = extensions.get("code") if isinstance(extensions, Mapping) else None
    kind = str(first.get("type") or code or "")
    said = str(first.get("message") or "no reason")[:_MOST_SHOWN]
    raise DatasetError(
        _TYPES.get(kind, "invalid"), f"'{title}' does not answer the query: {said}; check it"
    )
