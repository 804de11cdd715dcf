"""Datasets at an http or https URL: one file, or an API."""

import hashlib
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources import cached_files, files, params, web_address
from caraway_plugins.sources.api import outside, source
from caraway_plugins.sources.api.calls import ApiCall
from caraway_plugins.sources.api.source import ApiSource
from caraway_plugins.sources.disk import Disk
from caraway_plugins.sources.params import Params

_TIMEOUT_S = 30.0
_CURRENT = "current.json"
_VALIDATORS = ("etag", "last-modified")


class WebFile:
    """Downloads a file to a cache folder, and asks the server whether it changed.

    An address that params or its form say to be an API is read page by page.
    """

    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, splits=True)

    def resolve(self, request: SourceRequest) -> TableSpec:
        values = _checked(request)
        if source.is_api(request, values):
            return ApiSource().resolve(request)
        local = _download(request, values)
        table = files.read(Disk(), str(local), values, replace(request, path=str(local)))
        if table.is_external:
            # Executors on other hosts get copies of files that the engine reads.
            raise DatasetError(
                "unsupported",
                f"'{web_address.title(request)}': documents and ORC files are read from disks and "
                "object stores; copy it there",
            )
        return table

    def fingerprint(self, request: SourceRequest) -> str | None:
        values = _checked(request)
        if source.is_api(request, values):
            return ApiSource().fingerprint(request)
        with _client(values, request) as client:
            answer = client.head(web_address.of(request, values))
            if answer.status_code in (
                405,
                501,
            ):  # no support for HEAD: read only the headers of GET
                with client.stream("GET", web_address.of(request, values)) as answer:
                    _refuse(answer, request)
            _refuse(answer, request)
        known = [answer.headers.get(name, "") for name in (*_VALIDATORS, "content-length")]
        return hashlib.sha256("\0".join(known).encode()).hexdigest()


def _checked(request: SourceRequest) -> Params:
    return params.checked(request.connector, request.params)


@dataclass(frozen=True, slots=True)
class _Copy:
    """The cached copy of a URL, with its ETag."""

    path: Path
    etag: str | None


def _download(request: SourceRequest, values: Params) -> Path:
    """Download the file, unless the cached copy is still current."""
    url = web_address.of(request, values)
    # Each dataset has its own folder, because two datasets with one URL may load concurrently.
    place = hashlib.sha256(f"{request.name}\0{url}".encode()).hexdigest()[:32]
    folder = request.cache_dir / "http" / place
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _cached(folder)
        headers = {"if-none-match": before.etag} if before and before.etag else {}
        with (
            _client(values, request) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            if before and answer.status_code == httpx.codes.NOT_MODIFIED:
                return before.path
            _refuse(answer, request)
            name = f"{uuid.uuid4().hex}-{Path(urlsplit(url).path).name[-100:] or 'file'}"
            cached_files.write(folder / name, lambda stream: stream.writelines(answer.iter_bytes()))
            _remember(folder, name, answer.headers.get("etag"))
        # Running queries may still read the copy before.
        cached_files.keep_only(folder, {name, before.path.name if before else name, _CURRENT})
    except OSError as exc:
        raise DatasetError(
            "unavailable", f"'{web_address.title(request)}' cannot be cached: {exc.strerror}"
        ) from exc
    return folder / name


def _cached(folder: Path) -> _Copy | None:
    try:
        kept = json.loads((folder / _CURRENT).read_text())
        copy = _Copy(folder / kept["name"], kept["etag"])
    except (FileNotFoundError, ValueError, KeyError):
        return None
    return copy if copy.path.is_file() else None


def _remember(folder: Path, name: str, etag: str | None) -> None:
    content = json.dumps({"name": name, "etag": etag}).encode()
    cached_files.write(folder / _CURRENT, lambda stream: stream.writelines([content]))


@contextmanager
def _client(values: Params, request: SourceRequest) -> Iterator[httpx.Client]:
    username, password = values.text("http_username"), values.text("http_password")
    auth = httpx.BasicAuth(username or "", password or "") if username or password else None
    timeout = httpx.Timeout(values.seconds("client_timeout", _TIMEOUT_S))
    headers = web_address.headers(values)
    home = web_address.of(request, values)

    def restrict(sent: httpx.Request) -> None:
        # The client itself keeps all headers but `Authorization` when it follows a redirect.
        call = ApiCall(home, str(sent.url))
        if not call.is_home:
            outside.check(home, call.url, web_address.title(request))
            for name in headers:
                sent.headers.pop(name, None)

    try:
        with httpx.Client(
            auth=auth,
            timeout=timeout,
            headers=headers,
            follow_redirects=True,
            event_hooks={"request": [restrict]},
        ) as client:
            yield client
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        # The message of the error may contain the whole URL, including secrets in its query.
        raise DatasetError(
            "unavailable",
            f"'{web_address.title(request)}' cannot be fetched; check the address and the network",
        ) from exc


def _refuse(answer: httpx.Response, request: SourceRequest) -> None:
    status, title = answer.status_code, web_address.title(request)
    if status < 400:
        return
    if status in (401, 403):
        raise DatasetError("auth", f"'{title}': access is denied ({status}); check http_username "
                           f"and http_password")  # fmt: skip
    if status in (404, 410):
        raise DatasetError("not_found", f"'{title}' does not exist ({status}); check the address")
    raise DatasetError("unavailable", f"'{title}' returned {status}; check the server")
