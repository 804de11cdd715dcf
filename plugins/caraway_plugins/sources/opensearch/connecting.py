"""Connects to a server: its address, its login, and requests to it."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import quote

import httpx

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources import web_address
from caraway_plugins.sources.api import limiting
from caraway_plugins.sources.api.calls import ApiCall
from caraway_plugins.sources.api.sending import ApiClient, ApiLimits
from caraway_plugins.sources.params import Params

_END_S = 5.0
Product = Literal["opensearch", "elasticsearch"]


@dataclass(frozen=True, slots=True)
class SearchLogin:
    """The address of a server, and headers that hold its login."""

    product: Product
    endpoint: str
    headers: Mapping[str, str] = field(repr=False)
    limits: ApiLimits


def login_of(product: Product, request: SourceRequest, known: Params) -> SearchLogin:
    """Return the login that params describe.

    Raises:
        DatasetError: a param is wrong or missing.
    """
    headers = {"content-type": "application/json"}
    key = known.text(f"{product}_api_key")
    basic = web_address.basic(known, f"{product}_user", f"{product}_pass")
    if key and basic:
        raise DatasetError(
            "invalid", f"params has {product}_api_key and a login with a password; remove one"
        )
    if login := f"ApiKey {key}" if key else basic:
        headers["authorization"] = login
    limits = replace(
        limiting.limits_of(request, known),
        is_exact=True,  # Numbers in text columns keep their digits.
        secret_params=f"{product}_user and {product}_pass, or {product}_api_key, and the rights",
        root_certs=known.text(f"{product}_sslrootcert"),
    )
    return SearchLogin(product, _endpoint(product, known), headers, limits)


def _endpoint(product: Product, known: Params) -> str:
    name = f"{product}_endpoint"
    written = known.text(name) or ""
    try:
        url = httpx.URL(written)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query:
        raise DatasetError(
            "invalid",
            f"params.{name} is not an address; write https://host:9200, and the login as "
            f"{product}_user and {product}_pass",
        )
    return written.rstrip("/")


class SearchClient:
    """Asks one server."""

    def __init__(self, login: SearchLogin, stopped: threading.Event | None = None) -> None:
        self._login = login
        self._stopped = stopped or threading.Event()
        self._http = ApiClient(login.limits, self._stopped)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def describe(self, names: str) -> Mapping[str, Any]:
        """Return the indexes of an expression, each with its mapping, settings and aliases.

        Raises:
            DatasetError: they do not exist, or the server refuses or cannot be reached.
        """
        found: Mapping[str, Any] = self._ask(f"/{_quoted(names)}", None)
        return found

    def search(self, names: str | None, body: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the answer of a search, over some indexes or a point in time.

        Raises:
            DatasetError: as for `describe`, or a part of the index cannot be searched.
        """
        place = "" if names is None else f"/{_quoted(names)}"
        answer = self._ask(f"{place}/_search?allow_partial_search_results=false", body)
        if answer.get("timed_out") or (answer.get("_shards") or {}).get("failed"):
            raise DatasetError(
                "unavailable",
                f"a part of '{names or self._login.endpoint}' cannot be searched; check the server",
            )
        found: Mapping[str, Any] = answer
        return found

    @contextmanager
    def point_in_time(self, names: str, keep: str) -> Iterator[str]:
        """Yield the id of a point in time, which is kept for some time after each search.

        Raises:
            DatasetError: as for `describe`.
        """
        if self._login.product == "opensearch":
            kind, address = "pit_id", "_search/point_in_time"
            option = "&allow_partial_pit_creation=false"
        else:
            kind, address, option = "id", "_pit", ""
        query = f"?keep_alive={keep}{option}"
        point = self._ask(f"/{_quoted(names)}/{address}{query}", "")[kind]
        ended = {kind: [point] if kind == "pit_id" else point}
        is_whole = False
        try:
            yield point
            is_whole = not self._stopped.is_set()
        finally:
            if is_whole:
                self.end(f"/{address}", ended)
            else:
                # This client asks for nothing more, or the server is away.
                with connected(replace(self._login, limits=_once(self._login.limits))) as other:
                    other.end(f"/{address}", ended)

    def end(self, path: str, points: Mapping[str, Any]) -> None:
        """End points in time, if that is possible; otherwise they end by themselves."""
        try:
            self._ask(path, points, "DELETE")
        except DatasetError:
            pass

    def _ask(self, path: str, body: Mapping[str, Any] | str | None, method: str = "") -> Any:
        login = self._login
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        url = f"{login.endpoint}{path}"
        return self._http.ask(ApiCall(login.endpoint, url, login.headers, text, method)).value


def _once(limits: ApiLimits) -> ApiLimits:
    return replace(limits, retries=0, timeout_s=min(limits.timeout_s, _END_S))


@contextmanager
def connected(login: SearchLogin, stopped: threading.Event | None = None) -> Iterator[SearchClient]:
    """Yield a client, which is closed afterwards.

    Raises:
        DatasetError: the certificates cannot be read.
    """
    client = SearchClient(login, stopped)
    try:
        yield client
    finally:
        client.close()


def _quoted(names: str) -> str:
    return quote(names, safe="*,-_.")
