"""Datasets that are an API over HTTP."""

from collections.abc import Mapping

import httpx

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_plugins.sources import formats, params, web_address
from caraway_plugins.sources.api import declared, describing, filtering, limiting, pointers
from caraway_plugins.sources.api.calls import ApiCall
from caraway_plugins.sources.api.rest import RestPages
from caraway_plugins.sources.api.table import ApiTable
from caraway_plugins.sources.decoded import declared as decoded
from caraway_plugins.sources.params import Params

_SWITCHES: Mapping[str, bool] = {
    "auto": True, "enabled": True, "true": True, "disabled": False, "false": False,
}  # fmt: skip


_PLACES = {
    "{offset}": "offset_param",
    "{page}": "page_param",
    "{limit}": "size_param",
}


def is_api(request: SourceRequest, known: Params) -> bool:
    """Return whether an address is that of an API: params say so, or nothing says that it is a
    file."""
    if any(known.text(name) for name in declared.PAGES | declared.DYNAMIC):
        return True
    if any(known.text(name) for name in ("file_format", "file_extension")):
        return False
    path = httpx.URL(web_address.of(request, known)).path
    return formats.guessed(path) is None and decoded.format_of(path) is None


class ApiSource:
    """Rows of an API, page by page."""

    capabilities = SourceCapabilities(projection=True, filters=True, limit=True)

    def resolve(self, request: SourceRequest) -> ApiTable:
        known = params.checked(request.connector, request.params)
        _refuse_dynamic(known)
        pages, limits = pages_of(request, known), limiting.limits_of(request, known)
        most = known.count("schema_infer_max_records")
        return describing.described(request, pages, limits, most)

    def fingerprint(self, request: SourceRequest) -> str | None:
        return describing.fingerprint(self.resolve(request))


def pages_of(request: SourceRequest, known: Params) -> RestPages:
    """Return the pages of an API as the params describe them.

    Raises:
        DatasetError: a param is wrong, or does not go with another one.
    """
    url, written = web_address.of(request, known), _written(known)
    by = [
        name
        for name in ("next_pointer", "offset_param", "page_param")
        if known.text(f"pagination_{name}") or name in written
    ]
    if len(by) > 1:
        names = " and ".join(f"pagination_{each}" for each in by)
        raise _invalid(f"{names} are two ways to page; keep one")
    is_on = _switch(known, "pagination")
    if by and not is_on:
        raise _invalid(f"pagination is disabled, and pagination_{by[0]} is set; remove one")
    pages = RestPages(
        call=ApiCall(url, url, _headers(known)),
        pointer=_pointer(known, "json_pointer", "pagination_data_pointer") or "",
        unnest_depth=limiting.number(known, "unnest_depth", 0),
        follows_links=is_on and _switch(known, "pagination_link_header"),
        next_pointer=_pointer(known, "pagination_next_pointer"),
        token_param=known.text("pagination_token_param"),
        offset_param=known.text("pagination_offset_param") or written.get("offset_param"),
        page_param=known.text("pagination_page_param") or written.get("page_param"),
        first_page=limiting.number(known, "pagination_first_page", 1),
        size_param=known.text("pagination_size_param") or written.get("size_param"),
        size=known.count("pagination_page_size"),
        filters=filtering.read(known.text("filter_params") or ""),
        most_pages=limiting.most_pages(known),
    )
    _check(pages)
    return pages


def _written(known: Params) -> Mapping[str, str]:
    """Return the params in `pagination_query_params`, such as `skip={offset}&limit={limit}`.

    Raises:
        DatasetError: it has another form.
    """
    found: dict[str, str] = {}
    for part in filter(None, (known.text("pagination_query_params") or "").split("&")):
        name, _, value = part.partition("=")
        if not name or value not in _PLACES:
            raise _invalid(
                f"pagination_query_params has '{part}'; write 'skip={{offset}}&limit={{limit}}' or "
                "'page={page}&limit={limit}', and other parameters in the address"
            )
        found[_PLACES[value]] = name
    return found


def _refuse_dynamic(known: Params) -> None:
    for name in sorted(declared.DYNAMIC):
        if (known.text(name) or "disabled") != "disabled":
            raise DatasetError(
                "unsupported",
                f"params.{name}: statements cannot make up requests here, as they may be planned "
                "and run several times; write a dataset for each path, with filter_params for the "
                "parameters that filters may set",
            )


def _check(pages: RestPages) -> None:
    if pages.token_param and pages.next_pointer is None:
        raise _invalid("pagination_token_param needs pagination_next_pointer")
    if (pages.size_param is None) != (pages.size is None):
        raise _invalid("pagination_size_param and pagination_page_size go together")
    in_address = httpx.URL(pages.call.url).params
    for each in pages.filters:
        if each.param in in_address:
            raise _invalid(
                f"filter_params has '{each.param}', which the address sets too; remove it there"
            )


def _headers(known: Params) -> Mapping[str, str]:
    headers = dict(web_address.headers(known))
    if token := known.text("http_auth_token"):
        headers["authorization"] = f"Bearer {token}"
    elif basic := web_address.basic(known):
        headers["authorization"] = basic
    return headers


def _pointer(known: Params, *names: str) -> str | None:
    name = next((each for each in names if known.text(each)), None)
    return None if name is None else pointers.check(known.values[name], name)


def _switch(known: Params, name: str) -> bool:
    value = known.text(name) or "auto"
    if value.lower() not in _SWITCHES:
        raise _invalid(f"{name} is '{value}'; set it to enabled or disabled")
    return _SWITCHES[value.lower()]


def _invalid(message: str) -> DatasetError:
    return DatasetError("invalid", f"params: {message}")
