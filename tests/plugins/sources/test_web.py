"""A file at an http URL, from a real server in a thread."""

import base64
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources.api import outside
from tests.kit import api_server
from tests.kit.api_server import ApiAnswer
from tests.plugins.sources import reading, writing


class Site(ThreadingHTTPServer):
    """Serves `content` by path, with ETags; `answered` counts the bodies sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content: dict[str, bytes] = {}
        self.answered: list[tuple[str, int]] = []
        self.credentials: str | None = None
        self.has_head = True

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def do_HEAD(self) -> None:
        self._answer(b"" if self.server.has_head else None)

    def do_GET(self) -> None:
        self._answer(self.server.content.get(self.path.partition("?")[0]))

    def _answer(self, body: bytes | None) -> None:
        content = self.server.content.get(self.path.partition("?")[0])
        etag = f'"{hash(content)}"'
        if self.command == "HEAD" and body is None:
            status = 405
        elif self.server.credentials not in (None, self.headers["authorization"]):
            status = 401
        elif content is None:
            status = 404
        else:
            status = 304 if self.headers["if-none-match"] == etag else 200
        self.server.answered.append((self.command, status))
        sent = (content or b"") if status == 200 else b""
        self.send_response(status)
        if content is not None:
            self.send_header("etag", etag)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(60)


def dataset(site: Site, tmp_path: Path, path: str, **params: str) -> reading.Dataset:
    return reading.Dataset("http", f"{site.address}{path}", tmp_path, params)


ROWS = [{"id": 1, "name": "a"}]


@pytest.mark.parametrize("suffix", [each for each in writing.FORMATS if each != ".orc"])
def test_a_file_is_fetched_and_read(suffix: str, site: Site, tmp_path: Path) -> None:
    site.content[f"/d/x{suffix}"] = writing.FORMATS[suffix](ROWS)
    assert dataset(site, tmp_path, f"/d/x{suffix}?token=1").rows() == ROWS


@pytest.mark.parametrize("name", ["x.orc", "x.md"])
def test_files_that_the_engine_cannot_read_are_refused(
    name: str, site: Site, tmp_path: Path
) -> None:
    site.content[f"/{name}"] = writing.orc_file(ROWS)
    with pytest.raises(DatasetError, match="are read from disks and object stores") as caught:
        dataset(site, tmp_path, f"/{name}").resolve()
    assert caught.value.type == "unsupported"


def test_what_did_not_change_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    site.content["/x.csv"] = b"a\n1\n"
    table = dataset(site, tmp_path, "/x.csv")
    table.rows()
    before = table.fingerprint()
    assert table.rows() == [{"a": 1}]
    assert [pair for pair in site.answered if pair[0] == "GET"] == [("GET", 200), ("GET", 304)]
    site.content["/x.csv"] = b"a\n22\n"
    assert table.fingerprint() != before
    assert table.rows() == [{"a": 22}]


def test_the_copy_before_stays_for_queries_that_run(site: Site, tmp_path: Path) -> None:
    table = dataset(site, tmp_path, "/x.csv")
    site.content["/x.csv"] = b"a\n1\n"
    context = reading.context(table.resolve())
    site.content["/x.csv"] = b"b\nx\n"
    assert table.rows() == [{"b": "x"}]
    assert context.sql("SELECT * FROM t").to_pydict() == {"a": [1]}
    site.content["/x.csv"] = b"c\n3\n"
    assert table.rows() == [{"c": 3}]
    assert len(list(tmp_path.rglob("*-x.csv"))) == 2


def test_a_server_without_head_has_fingerprints(site: Site, tmp_path: Path) -> None:
    site.content["/x.csv"], site.has_head = b"a\n1\n", False
    before = dataset(site, tmp_path, "/x.csv").fingerprint()
    site.content["/x.csv"] = b"a\n2\n"
    assert before and dataset(site, tmp_path, "/x.csv").fingerprint() != before


def test_credentials_headers_and_port(site: Site, tmp_path: Path) -> None:
    site.content["/x"] = b"a\n1\n"
    site.credentials = "Basic " + base64.b64encode(b"u:p").decode()
    params = {"file_format": "csv", "http_username": "u", "http_password": "p"}
    assert dataset(site, tmp_path, "/x", **params).rows() == [{"a": 1}]
    site.credentials = "Bearer t"
    params = {"file_format": "csv", "http_headers": "x: y; Authorization: Bearer t"}
    assert dataset(site, tmp_path, "/x", **params).rows() == [{"a": 1}]
    by_port = reading.Dataset(
        "http", "//127.0.0.1/x", tmp_path, {**params, "http_port": str(site.server_port)}
    )
    assert by_port.rows() == [{"a": 1}]


def test_refusals_are_told_apart_and_hide_secrets(site: Site, tmp_path: Path) -> None:
    def refusal(path: str) -> DatasetError:
        with pytest.raises(DatasetError) as caught:
            dataset(site, tmp_path, path, client_timeout="20s").resolve()
        assert "hidden" not in caught.value.message
        return caught.value

    assert refusal("/gone.csv?key=hidden").type == "not_found"
    site.content["/x.csv"] = b"a\n1\n"
    site.credentials = "nobody"
    assert refusal("/x.csv?key=hidden").type == "auth"
    away = reading.Dataset("http", "127.0.0.1:1/x.csv?key=hidden", tmp_path, {})
    with pytest.raises(DatasetError) as caught:
        away.resolve()
    assert caught.value.type == "unavailable" and "hidden" not in caught.value.message


def test_another_host_gets_no_headers(tmp_path: Path) -> None:
    with api_server.running() as server, api_server.running() as other:
        other.say("/x.csv", b"a\n1\n")
        server.answers["/x.csv"] = lambda _: ApiAnswer(b"", 302, {"location": f"{other.url}/x.csv"})
        params = {"http_headers": "X-Key: hidden; Authorization: hidden", "http_username": "hidden"}
        table = reading.Dataset("http", f"{server.address}/x.csv", tmp_path, params)
        assert table.rows() == [{"a": 1}] and table.fingerprint()
        assert server.requests[-1].headers["x-key"] == "hidden"
        sent = {name: value for each in other.requests for name, value in each.headers.items()}
        assert "x-key" not in sent and "authorization" not in sent


def test_a_public_server_does_not_lead_inside(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(home: str, url: str, title: str) -> None:
        raise DatasetError("invalid", f"{title}: no")

    monkeypatch.setattr(outside, "check", refuse)
    with api_server.running() as server:
        server.answers["/x.csv"] = lambda _: ApiAnswer(
            b"", 302, {"location": f"http://{site.address}/x.csv"}
        )
        with pytest.raises(DatasetError, match=r"no$"):
            reading.Dataset("http", f"{server.address}/x.csv", tmp_path, {}).resolve()
    assert not site.answered
