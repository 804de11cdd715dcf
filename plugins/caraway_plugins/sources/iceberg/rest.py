"""A client of catalogs that speak Iceberg's REST protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

import httpx

from caraway_core.errors import DatasetError
from caraway_plugins.sources.params import Params

_TIMEOUT_S = 30.0
_MOST_PAGES = 10_000
_SEPARATOR = "%1F"
_CONFLICT = 409
_ACCESS = {"X-Iceberg-Access-Delegation": "vended-credentials"}
Namespace = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CatalogPath:
    """The address of a catalog, and of a namespace or a table in it."""

    base: str
    prefix: str = ""
    namespace: Namespace = ()
    table: str = ""


@dataclass(frozen=True, slots=True)
class CatalogAnswer:
    """The answer of a catalog for a table; `config` may hold credentials."""

    metadata: Mapping[str, Any]
    config: Mapping[str, str] = field(repr=False)


def path_of(url: str) -> CatalogPath:
    """Return what a URL such as `https://host/v1/namespaces/a/tables/b` names.

    Raises:
        DatasetError: it names neither a catalog, nor a namespace, nor a table.
    """
    base, found, rest = url.partition("/v1/")
    parts = [each for each in rest.split("/") if each]
    if not found:
        return CatalogPath(url.removesuffix("/v1").rstrip("/"))
    place = parts.index("namespaces") if "namespaces" in parts else len(parts)
    prefix, after = "/".join(parts[:place]), parts[place:]
    match after:
        case [] | ["namespaces"]:
            return CatalogPath(base, prefix)
        case ["namespaces", namespace]:
            return CatalogPath(base, prefix, _levels(namespace))
        case ["namespaces", namespace, "tables", table]:
            return CatalogPath(base, prefix, _levels(namespace), unquote(table))
        case _:
            raise DatasetError(
                "invalid",
                "the address is that of no catalog; write it as "
                "https://HOST/v1/namespaces/NAMESPACE/tables/TABLE",
            )


def url_of(path: CatalogPath) -> str:
    """Return the URL of a table, as `path_of` reads it."""
    levels = "%1F".join(quote(each, safe="") for each in path.namespace)
    start = "/".join(filter(None, (path.base, "v1", path.prefix)))
    return f"{start}/namespaces/{levels}/tables/{quote(path.table, safe='')}"


def _levels(namespace: str) -> Namespace:
    # Without the separator of the protocol, a dot separates levels.
    text = unquote(namespace)
    return tuple(text.split("\x1f" if "\x1f" in text else "."))


class CatalogClient:
    """Asks one catalog. Its methods block, and raise DatasetError for users."""

    def __init__(self, client: httpx.Client, path: CatalogPath, title: str) -> None:
        self._client, self._title = client, title
        found = self._asked("/v1/config", {})
        config = {**found.get("defaults", {}), **found.get("overrides", {})}
        prefix = path.prefix or str(config.get("prefix") or "")
        self._start = f"/v1/{quote(prefix, safe='/')}".rstrip("/")
        self._separator = str(config.get("namespace-separator") or _SEPARATOR)

    def namespaces(self, parent: Namespace = ()) -> Iterator[Namespace]:
        """Yield the namespaces below another one, at any depth."""
        params = {"parent": unquote(self._separator).join(parent)} if parent else {}
        for page in self._pages(f"{self._start}/namespaces", params):
            for each in page.get("namespaces", ()):
                found = tuple(map(str, each))
                if found != parent and found[: len(parent)] == parent:
                    yield found
                    yield from self._below(found)

    def tables(self, namespace: Namespace) -> Iterator[str]:
        """Yield the names of the tables of a namespace."""
        for page in self._pages(f"{self._namespace(namespace)}/tables", {}):
            for each in page.get("identifiers", ()):
                if tuple(each["namespace"]) == namespace:
                    yield str(each["name"])

    def load(self, namespace: Namespace, table: str) -> CatalogAnswer:
        """Return the metadata of a table."""
        path = f"{self._namespace(namespace)}/tables/{quote(table, safe='')}"
        return _answer(self._asked(path, {"snapshots": "all"}, _ACCESS))

    def stage(self, namespace: Namespace, body: Mapping[str, object]) -> CatalogAnswer:
        """Return what a new table would have, which nobody sees before it is committed."""
        path = f"{self._namespace(namespace)}/tables"
        answer = self._client.post(path, json={**body, "stage-create": True}, headers=_ACCESS)
        if answer.status_code == _CONFLICT:
            raise DatasetError("invalid", f"'{self._title}' has a table of that name")
        _refuse(answer, self._title)
        return _answer(answer.json())

    def drop(self, namespace: Namespace, table: str) -> None:
        """Take a table out of the catalog; its files stay."""
        path = f"{self._namespace(namespace)}/tables/{quote(table, safe='')}"
        _refuse(self._client.delete(path, params={"purgeRequested": "false"}), self._title)

    def commit(self, namespace: Namespace, table: str, body: Mapping[str, object]) -> bool:
        """Change a table; False: it is not as the change requires."""
        path = f"{self._namespace(namespace)}/tables/{quote(table, safe='')}"
        answer = self._client.post(path, json=body)
        if answer.status_code == _CONFLICT:
            return False
        _refuse(answer, self._title)
        return True

    def _below(self, parent: Namespace) -> Iterator[Namespace]:
        try:
            yield from self.namespaces(parent)
        except DatasetError as exc:
            # Catalogs with one level refuse the param `parent`.
            if exc.type not in ("not_found", "invalid"):
                raise

    def _namespace(self, namespace: Namespace) -> str:
        levels = self._separator.join(quote(each, safe="") for each in namespace)
        return f"{self._start}/namespaces/{levels}"

    def _pages(self, path: str, params: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        token = ""
        for _ in range(_MOST_PAGES):
            page = self._asked(path, {**params, "pageToken": token})
            yield page
            token = page.get("next-page-token") or ""
            if not token:
                return
        raise DatasetError("invalid", f"'{self._title}' lists more than {_MOST_PAGES} pages")

    def _asked(
        self, path: str, params: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        answer = self._client.get(path, params=params, headers=headers)
        _refuse(answer, self._title)
        found = answer.json()
        if not isinstance(found, dict):
            raise ValueError("no object")
        return found


@contextmanager
def connected(path: CatalogPath, params: Params) -> Iterator[CatalogClient]:
    """Sign in to a catalog.

    Raises:
        DatasetError: it cannot be reached, or refuses the credentials, or answers something else.
    """
    title = path.base
    timeout = httpx.Timeout(params.seconds("client_timeout", _TIMEOUT_S))
    try:
        with httpx.Client(base_url=path.base, timeout=timeout, follow_redirects=True) as client:
            if token := _token(client, path, params):
                client.headers["authorization"] = f"Bearer {token}"
            yield CatalogClient(client, path, title)
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        # The message of the error may contain the whole URL.
        raise DatasetError(
            "unavailable", f"'{title}' cannot be reached; check the address and the network"
        ) from exc
    except (LookupError, TypeError, ValueError) as exc:
        raise DatasetError(
            "invalid", f"'{title}' does not answer as an Iceberg REST catalog; check the address"
        ) from exc


def _answer(found: Mapping[str, Any]) -> CatalogAnswer:
    config = dict(found.get("config") or {})
    for each in found.get("storage-credentials") or ():
        config.update(each.get("config") or {})
    return CatalogAnswer(found["metadata"], {str(k): str(v) for k, v in config.items()})


def _token(client: httpx.Client, path: CatalogPath, params: Params) -> str | None:
    credential = params.text("iceberg_oauth2_credential")
    if token := params.text("iceberg_token"):
        return token
    if credential is None:
        return None
    id_, found, secret = credential.partition(":")
    url = params.text("iceberg_oauth2_token_url", "iceberg_oauth2_server_url")
    answer = client.post(
        url or f"{path.base}/v1/oauth/tokens",
        data={
            "grant_type": "client_credentials",
            "client_id": id_ if found else "",
            "client_secret": secret if found else credential,
            "scope": params.text("iceberg_oauth2_scope") or "catalog",
        },
    )
    if answer.status_code in (400, 401, 403):
        raise DatasetError(
            "auth",
            f"'{path.base}' refuses the credentials ({answer.status_code}); check "
            "iceberg_oauth2_credential",
        )
    _refuse(answer, path.base)
    return str(answer.json()["access_token"])


def _refuse(answer: httpx.Response, title: str) -> None:
    status = answer.status_code
    if status < 400:
        return
    if status in (401, 403, 419):
        raise DatasetError("auth", f"'{title}': access is denied ({status}); check iceberg_token")
    if status == 404:
        raise DatasetError("not_found", f"'{title}' has no such table or namespace")
    if status in (400, 406, 422):
        raise DatasetError("invalid", f"'{title}' refuses the request ({status})")
    raise DatasetError("unavailable", f"'{title}' returned {status}; check the server")
