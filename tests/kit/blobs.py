"""An emulation of the read part of Azure's blob protocol, on its own port, in a thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ACCOUNT = "devstoreaccount1"
_MODIFIED = formatdate(1700000000, usegmt=True)


@dataclass
class BlobServer:
    """Blobs by container and name; with `refuses`, every request gets 403."""

    blobs: dict[tuple[str, str], bytes] = field(default_factory=dict)
    refuses: bool = False
    signed: list[str | None] = field(default_factory=list)
    endpoint: str = ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    state: BlobServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        state, url = self.server.state, urlsplit(self.path)
        state.signed.append(self.headers["authorization"])
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        container, _, name = unquote(url.path).removeprefix(f"/{ACCOUNT}").strip("/").partition("/")
        if state.refuses:
            return self._answer(403, b"")
        if query.get("comp") == "list":
            return self._answer(200, self._listing(container, query.get("prefix", "")))
        content = state.blobs.get((container, name))
        if content is None:
            return self._answer(404, b"")
        return self._blob(content)

    do_HEAD = do_GET

    def _listing(self, container: str, prefix: str) -> bytes:
        found = [
            f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{_MODIFIED}"
            f"</Last-Modified><Content-Length>{len(content)}</Content-Length>"
            f"<Content-Type>x/y</Content-Type><Etag>e{hash(content)}</Etag></Properties></Blob>"
            for (holder, name), content in sorted(self.server.state.blobs.items())
            if holder == container and name.startswith(prefix)
        ]
        blobs = "".join(found)
        return f"<EnumerationResults><Blobs>{blobs}</Blobs></EnumerationResults>".encode()

    def _blob(self, content: bytes) -> None:
        wanted = self.headers["range"] or self.headers["x-ms-range"]
        if not wanted:
            return self._answer(200, content)
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else len(content) - int(last)
        end = min(int(last) + 1, len(content)) if first and last else len(content)
        span = f"bytes {start}-{end - 1}/{len(content)}"
        return self._answer(206, content[start:end], {"content-range": span})

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "content-length": str(len(body)),
            "last-modified": _MODIFIED,
            "etag": f"e{hash(body)}",
            "x-ms-blob-type": "BlockBlob",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[BlobServer]:
    """Serve until the block ends."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.state = BlobServer(endpoint=f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.state
        finally:
            server.shutdown()
            thread.join(60)
