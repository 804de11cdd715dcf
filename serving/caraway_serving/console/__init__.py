"""The console: a page and its files, built from `console/` and served as they are."""

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from caraway_serving import codings

FOLDER = Path(__file__).parent / "files"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ENCODED = ".gz"
_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'"
)
_SECURITY = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_MISSING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Caraway</title></head><body>
<h1>The console is not built</h1>
<p>The runtime is up, and <a href="docs">/docs</a> describes its API. In a checkout,
<code>make console</code> builds the console. Then restart the runtime.</p></body></html>
"""


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it is sent: as it is, and compressed when it was built."""

    content: bytes
    compressed: bytes | None
    media_type: str
    etag: str


def routes(name: str = "index.html", folder: Path = FOLDER) -> list[BaseRoute]:
    """Return the routes of a page and its files. They need no key: the page has no data."""

    @functools.cache
    def files() -> Mapping[str, _File]:
        return _read(folder)

    async def page(request: Request) -> Response:
        found = files().get(name)
        if found is None:
            return Response(_MISSING, 200, _SECURITY, _TYPES[".html"])
        # Its name is the same in each release, those of the other files are not.
        return _respond(found, request.headers, "no-cache")

    async def file(request: Request) -> Response:
        found = files().get(f"console/{request.path_params['name']}")
        if found is None:
            return Response("no such file of the console\n", 404, media_type="text/plain")
        return _respond(found, request.headers, "public, max-age=31536000, immutable")

    return [
        Route("/", page, methods=["GET"], include_in_schema=False),
        Route("/console/{name}", file, methods=["GET"], include_in_schema=False),
    ]


def _read(folder: Path) -> dict[str, _File]:
    """Return the files by their paths. Only these are served, whatever a request names."""
    found: dict[str, _File] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix not in _TYPES:
            continue
        content = path.read_bytes()
        encoded = path.with_name(path.name + _ENCODED)
        found[path.relative_to(folder).as_posix()] = _File(
            content,
            encoded.read_bytes() if encoded.exists() else None,
            _TYPES[path.suffix],
            f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        )
    return found


def _respond(file: _File, headers: Headers, cache_control: str) -> Response:
    sent = {
        **_SECURITY,
        "cache-control": cache_control,
        "etag": file.etag,
        "vary": "Accept-Encoding",
    }
    if file.etag in headers.get("if-none-match", ""):
        return Response(status_code=304, headers=sent)
    if (
        file.compressed is not None
        and codings.coding(headers.get("accept-encoding"), ("gzip",)) == "gzip"
    ):
        return Response(file.compressed, 200, {**sent, "content-encoding": "gzip"}, file.media_type)
    return Response(file.content, 200, sent, file.media_type)
