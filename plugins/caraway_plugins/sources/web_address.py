"""The address, the headers and the login of datasets of the web."""

import base64
from collections.abc import Mapping

import httpx

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.params import Params


def of(request: SourceRequest, params: Params) -> str:
    """Return the address of a dataset.

    Raises:
        DatasetError: it is none.
    """
    try:
        url = httpx.URL(f"{request.connector}://{request.path.removeprefix('//')}")
        port = params.count("http_port")
        return str(url.copy_with(port=port) if port else url)
    except httpx.InvalidURL as exc:
        raise DatasetError(
            "invalid", f"'{title(request)}' is not an address; write https://host/path"
        ) from exc


def title(request: SourceRequest) -> str:
    """Return the address for messages, which shows no secrets."""
    path = request.path.removeprefix("//").partition("?")[0]
    return f"{request.connector}://{path.rpartition('@')[2]}"


def headers(params: Params) -> Mapping[str, str]:
    """Return the headers of `http_headers`.

    Raises:
        DatasetError: it has another form.
    """
    pairs = (params.text("http_headers") or "").replace("\n", ";").replace(",", ";").split(";")
    found: dict[str, str] = {}
    for pair in filter(None, map(str.strip, pairs)):
        name, colon, value = pair.partition(":")
        if not colon:
            raise DatasetError(
                "invalid", "params.http_headers must have the form 'Name: value, Name: value'"
            )
        found[name.strip()] = value.strip()
    return found


def basic(params: Params) -> str | None:
    """Return the header of Basic authentication, if there is a login."""
    username, password = params.text("http_username"), params.text("http_password")
    if not username and not password:
        return None
    return "Basic " + base64.b64encode(f"{username or ''}:{password or ''}".encode()).decode()
