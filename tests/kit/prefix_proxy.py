"""A reverse proxy that serves a runtime below a path, as one in front of several services does."""

import contextlib
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

_OF_CONNECTIONS = frozenset(
    {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
)


@contextlib.contextmanager
def proxied(
    target: str, prefix: str, breaks: str = "", *, keeps_host: bool = False
) -> Iterator[str]:
    """Serve `target` below `prefix` until the block ends. Yields the URL, which ends in a slash.

    Responses of the path `breaks` end in their middle. With `keeps_host`, the header Host is that
    of the browser.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if not self.path.startswith(f"{prefix}/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = _passed(self.headers.items())
            if keeps_host:
                headers["host"] = self.headers["host"]
            with client.stream(
                self.command,
                target + self.path.removeprefix(prefix),
                headers=headers,
                content=body,
            ) as answer:
                self.send_response(answer.status_code)
                for name, value in _passed(answer.headers.multi_items()).items():
                    self.send_header(name, value)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for part in answer.iter_raw():
                    self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                    self.wfile.flush()
                    if breaks and self.path.endswith(breaks):
                        self.close_connection = True
                        return
                self.wfile.write(b"0\r\n\r\n")

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    with (
        httpx.Client(timeout=120) as client,
        ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server,
    ):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}{prefix}/"
        finally:
            server.shutdown()
            thread.join()


def _passed(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: value for name, value in headers if name.lower() not in _OF_CONNECTIONS}
