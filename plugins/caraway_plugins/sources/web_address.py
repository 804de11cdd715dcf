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


def headers(params: Params, param: str = "http_headers") -> Mapping[str, str]:
    """Return the headers of a param.

    Raises:
        DatasetError: it has another form.
    """
    pairs = (params.text(param) or "").replace("\n", ";").replace(",", ";").split(";")
    found: dict[str, str] = {}
    for pair in filter(None, map(str.strip, pairs)):
        name, colon, value = pair.partition(":")
        if not colon:
            raise DatasetError(
                "invalid", f"params.{param} must have the form 'Name: value, Name: value'"
            )
        found[name.strip()] = value.strip()
    return found


def basic(
    params: Params, user_param: str = "http_username", password_param: str = "http_password"
) -> str | None:
    """Return the header of Basic authentication, if there is a login."""
    username, password = params.text(user_param), params.text(password_param)
    if not username and not password:
        return None
    return "Basic " + base64.b64encode(f"{username or ''}:{password or ''}".encode()).decode()
