"""Issues, pull requests, commits and stargazers of a repository, over GitHub's GraphQL."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources.api import filtering, pointers, table
from caraway_plugins.sources.api.calls import ApiCall, ApiPage
from caraway_plugins.sources.github import columns
from caraway_plugins.sources.github.columns import GithubColumn
from caraway_plugins.sources.graphql import pages

_PAGE = 100


@dataclass(frozen=True, slots=True)
class GithubList:
    """A list of a repository: its columns, the fields that lead to it, and its rows below it.

    `opens` is the GraphQL of the fields before the list, with `path` to it in an answer. Arguments
    take the values of filters, by column and operator: `{}` is replaced by the value.
    """

    columns: tuple[GithubColumn, ...]
    opens: str
    path: tuple[str, ...]
    rows: str = "nodes"
    states: frozenset[str] = frozenset()
    arguments: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns with their types."""
        return pa.schema([(each.name, each.type) for each in self.columns])

    def sent(self, filters: Sequence[ColumnFilter]) -> str:
        """Return the arguments for filters; of two filters for one argument, none is sent."""
        found: dict[str, list[str]] = {}
        for each in filters:
            if (each.column, each.operator) == ("state", "=") and each.value in self.states:
                found.setdefault("states", []).append(f"[{each.value}]")
            elif argument := self.arguments.get((each.column, each.operator)):
                name, _, form = argument.partition(": ")
                value = json.dumps(filtering.written(_whole_second(each)))
                found.setdefault(name, []).append(form.replace("{}", value))
        texts = (f", {name}: {values[0]}" for name, values in found.items() if len(values) == 1)
        return "".join(texts)


_SINCE = "filterBy: {since: {}}"
LISTS: Mapping[str, GithubList] = {
    "issues": GithubList(
        columns.ISSUES,
        "",
        ("issues",),
        states=frozenset({"OPEN", "CLOSED"}),
        arguments={("updated_at", ">"): _SINCE, ("updated_at", ">="): _SINCE},
    ),
    "pulls": GithubList(
        columns.PULLS,
        "",
        ("pullRequests",),
        states=frozenset({"OPEN", "CLOSED", "MERGED"}),
    ),
    "commits": GithubList(
        columns.COMMITS,
        "defaultBranchRef { target { ... on Commit {",
        ("defaultBranchRef", "target", "history"),
        arguments={
            ("committed_date", ">"): "since: {}",
            ("committed_date", ">="): "since: {}",
            ("committed_date", "<"): "until: {}",
            ("committed_date", "<="): "until: {}",
        },
    ),
    "stargazers": GithubList(columns.STARGAZERS, "", ("stargazers",), rows="edges"),
}
"""The lists by their names in `from`."""


def _whole_second(filter_: ColumnFilter) -> object:
    """Return the value of a filter, as a moment in whole seconds which leaves out no row."""
    value = filter_.value
    if not isinstance(value, datetime) or not value.microsecond:
        return value
    is_upper = filter_.operator in ("<", "<=")
    return value.replace(microsecond=0) + timedelta(seconds=int(is_upper))


@dataclass(frozen=True, slots=True)
class ListPages:
    """Pages of a list. A query asks for the columns of the statement only."""

    call: ApiCall = field(repr=False)
    owner: str
    repository: str
    kind: str
    most_pages: int = table.USUAL_PAGES

    @property
    def title(self) -> str:
        return f"github:{self.owner}/{self.repository}/{self.kind}"

    def first(self, request: RowRequest) -> ApiCall:
        list_ = LISTS[self.kind]
        names = {*request.columns, *(each.column for each in request.filters)}
        wanted = [each.selection for each in list_.columns if each.name in names]
        size = _PAGE
        if request.limit is not None and not request.filters:
            size = min(_PAGE, max(request.limit, 1))
        list_text = (
            f"{list_.path[-1]}(first: {size}, after: $after{list_.sent(request.filters)}) "
            f"{{ {list_.rows} {{ {' '.join(wanted)} }} pageInfo {{ hasNextPage endCursor }} }}"
        )
        closes = "}" * list_.opens.count("{")
        query = (
            "query($owner: String!, $name: String!, $after: String) "
            "{ repository(owner: $owner, name: $name) "
            f"{{ {list_.opens} {list_text} {closes} }} }}"
        )
        return pages.asked(self.call, query, {"owner": self.owner, "name": self.repository})

    def rows(self, _call: ApiCall, page: ApiPage) -> Sequence[Mapping[str, Any]]:
        pages.refuse_errors(page, self.title)
        list_ = LISTS[self.kind]
        if pages.is_null(page, self._pointer()):
            return []
        nodes = pointers.rows(page.value, f"{self._pointer()}/{list_.rows}", self.title)
        return [{each.name: each.value(node) for each in list_.columns} for node in nodes]

    def next(self, call: ApiCall, page: ApiPage, rows: int) -> ApiCall | None:
        cursor = pages.end_cursor(page, f"{self._pointer()}/pageInfo", self.title)
        if cursor is None:
            return None
        sent = json.loads(call.body or "{}")
        return pages.asked(call, sent["query"], {**sent["variables"], "after": cursor})

    def _pointer(self) -> str:
        return "".join(f"/{each}" for each in ("data", "repository", *LISTS[self.kind].path))
