"""The pages of an API whose rows are in JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from caraway_core.errors import DatasetError
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.api import filtering, pointers, table
from caraway_plugins.sources.api.calls import ApiCall, ApiPage
from caraway_plugins.sources.api.filtering import FilterParam


@dataclass(frozen=True, slots=True)
class RestPages:
    """Pages by links, cursors, offsets or numbers.

    Without any of these an answer is the only page. With an offset or a number the page after the
    last one is empty: a short page may be one that the server cut.
    """

    call: ApiCall = field(repr=False)
    pointer: str = ""
    unnest_depth: int = 0
    follows_links: bool = True
    next_pointer: str | None = None
    token_param: str | None = None
    offset_param: str | None = None
    page_param: str | None = None
    first_page: int = 1
    size_param: str | None = None
    size: int | None = None
    filters: tuple[FilterParam, ...] = ()
    most_pages: int = table.USUAL_PAGES

    @property
    def title(self) -> str:
        return self.call.title

    def first(self, request: RowRequest) -> ApiCall:
        params = filtering.sent(self.filters, request.filters)
        size = self.size
        if request.limit is not None and not request.filters and size is not None:
            size = min(size, max(request.limit, 1))
        if self.size_param and size is not None:
            params[self.size_param] = str(size)
        if self.offset_param:
            params[self.offset_param] = "0"
        if self.page_param:
            params[self.page_param] = str(self.first_page)
        return self.call.with_params(params) if params else self.call

    def rows(self, _call: ApiCall, page: ApiPage) -> Sequence[Mapping[str, Any]]:
        if page.value is None:
            return []
        rows = pointers.rows(page.value, self.pointer, self.title)
        return [pointers.unnested(each, self.unnest_depth, self.title) for each in rows]

    def next(self, call: ApiCall, page: ApiPage, rows: int) -> ApiCall | None:
        if self.next_pointer is not None:
            return self._after(call, page, self.next_pointer)
        for name, step in ((self.offset_param, rows), (self.page_param, 1)):
            if name:
                at = int(httpx.URL(call.url).params[name])
                return call.with_params({name: str(at + step)}) if rows else None
        if self.follows_links and page.next_link:
            return call.at(page.next_link, page.url)
        return None

    def _after(self, call: ApiCall, page: ApiPage, pointer: str) -> ApiCall | None:
        """Return the request for the page whose cursor or address is in the answer."""
        try:
            found = pointers.find(page.value, pointer)
        except LookupError:
            return None
        match found:
            case None | "" | False:
                return None
            case bool() | float() | list() | dict():
                raise DatasetError(
                    "schema",
                    f"an answer of '{self.title}' has no text at '{pointer}'; check "
                    "pagination_next_pointer",
                )
        if self.token_param:
            return call.with_params({self.token_param: str(found)})
        return call.at(str(found), page.url)
