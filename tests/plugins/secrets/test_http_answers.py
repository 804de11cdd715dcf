"""Calls of services that hold secrets: what each answer means, without a word of it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_plugins.secrets import http_answers
from caraway_plugins.secrets.http_answers import AbsentSecretError, RefusedSecretError


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Give each request one answer; yields the address, and the bodies that were sent."""
    sent: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.rfile.read(int(self.headers["content-length"] or 0)))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()
        thread.join()


def test_bodies_are_json_or_a_form() -> None:
    with answering(200, b'{"a": 1}') as (url, sent):
        assert http_answers.call("it", "POST", url, {}, {"b": "c"}) == {"a": 1}
        assert http_answers.call("it", "POST", url, {}, form={"b": "c d"}) == {"a": 1}
    assert json.loads(sent[0]) == {"b": "c"}
    assert sent[1] == b"b=c+d"


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (401, b"hunter2", RefusedSecretError, r"access is denied \(401\)"),
        (403, b"hunter2", RefusedSecretError, r"access is denied \(403\)"),
        (404, b"hunter2", AbsentSecretError, "does not exist"),
        (500, b"hunter2", CarawayError, "the server answered 500"),
        (302, b"hunter2", CarawayError, "the server answered 302"),
        (200, b'["hunter2"]', CarawayError, "the server answered 200"),
        (200, b"<p>hunter2</p>", CarawayError, "cannot be reached; check its address"),
    ],
)
def test_errors_quote_no_answer(
    status: int, body: bytes, kind: type[CarawayError], said: str
) -> None:
    with answering(status, body) as (url, _), pytest.raises(CarawayError, match=said) as caught:
        http_answers.call("the secret 'a'", "POST", url, {"token": "hunter3"})
    assert type(caught.value) is kind
    assert caught.value.message.startswith("the secret 'a' ")
    assert "hunter" not in caught.value.message
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[", "ftp://a", "no address", ""])
def test_addresses_that_do_not_answer(url: str) -> None:
    with pytest.raises(CarawayError, match="cannot be reached; check its address"):
        http_answers.call("it", "GET", url, {})


def test_a_file_of_certificates_is_named_if_it_is_none(tmp_path: Path) -> None:
    wrong = tmp_path / "ca.crt"
    wrong.write_text("hunter2")
    for path in (str(wrong), str(tmp_path / "none.crt"), str(tmp_path), "a\0b"):
        with pytest.raises(CarawayError, match="is not a file with certificates") as caught:
            http_answers.call("it", "GET", "https://127.0.0.1:1", {}, authorities=path)
        assert path in caught.value.message
        assert "hunter" not in caught.value.message


def test_files_with_tokens(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes("tökén\n".encode())
    assert http_answers.file_text("it", str(file)) == "tökén"
    file.write_bytes(b"\xff")
    for path in (str(file), str(tmp_path), "/none", "a\0b"):
        with pytest.raises(CarawayError, match=r"the file '[^']*' cannot be read"):
            http_answers.file_text("it", path)
