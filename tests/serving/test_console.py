"""The files of the console, as they are served."""

import gzip
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from caraway_serving import console

PAGE = b"<!doctype html><title>Caraway</title>"
SCRIPT = b"console.log(1)\n" * 50


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "console").mkdir()
    (tmp_path / "index.html").write_bytes(PAGE)
    script = tmp_path / "console" / "index-a1.js"
    script.write_bytes(SCRIPT)
    script.with_name("index-a1.js.gz").write_bytes(gzip.compress(SCRIPT))
    (tmp_path / ".built").write_text("digest")
    (tmp_path / "console" / "notes.txt").write_text("not a part of the console")
    return tmp_path


def client_of(folder: Path) -> TestClient:
    return TestClient(Starlette(routes=console.routes(folder=folder)))


def test_the_page_may_load_nothing_from_elsewhere(folder: Path) -> None:
    got = client_of(folder).get("/")
    assert got.content == PAGE
    assert got.headers["content-type"] == "text/html; charset=utf-8"
    policy = got.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert got.headers["cache-control"] == "no-cache"
    assert got.headers["referrer-policy"] == "no-referrer"
    assert got.headers["x-content-type-options"] == "nosniff"


def test_files_are_kept_for_ever_and_compressed_when_they_are_built(folder: Path) -> None:
    client = client_of(folder)
    got = client.get("/console/index-a1.js", headers={"accept-encoding": "gzip"})
    assert got.headers["content-encoding"] == "gzip"
    assert int(got.headers["content-length"]) < len(SCRIPT)
    assert got.content == SCRIPT
    assert "immutable" in got.headers["cache-control"]
    assert got.headers["vary"] == "Accept-Encoding"
    for refusal in ("identity", "gzip;q=0", "br"):
        plain = client.get("/console/index-a1.js", headers={"accept-encoding": refusal})
        assert "content-encoding" not in plain.headers
        assert plain.content == SCRIPT
        assert plain.headers["content-type"] == "text/javascript; charset=utf-8"


def test_a_page_that_the_browser_has_is_not_sent_again(folder: Path) -> None:
    client = client_of(folder)
    etag = client.get("/").headers["etag"]
    got = client.get("/", headers={"if-none-match": etag})
    assert (got.status_code, got.content) == (304, b"")
    assert "content-security-policy" in got.headers
    assert client.get("/", headers={"if-none-match": '"other"'}).content == PAGE


def test_head_has_no_body(folder: Path) -> None:
    got = client_of(folder).head("/")
    assert (got.status_code, got.content) == (200, b"")


@pytest.mark.parametrize(
    "path",
    ["/console/", "/console/index-a1.js.gz", "/console/notes.txt", "/console/.built",
     "/console/..%2findex.html", "/console/%2e%2e/index.html", "/console/index.html",
     "/console/a%00b", "/index.html"],
)  # fmt: skip
def test_nothing_else_is_served(folder: Path, path: str) -> None:
    (folder.parent / "secret.js").write_text("secret")
    client = client_of(folder)
    assert client.get(path).status_code == 404
    assert client.get("/console/..%2f..%2fsecret.js").status_code == 404
    assert client.post("/").status_code == 405


def test_a_console_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    client = client_of(tmp_path / "missing")
    got = client.get("/")
    assert got.status_code == 200
    assert "make console" in got.text
    assert "default-src 'self'" in got.headers["content-security-policy"]
    assert client.get("/console/index-a1.js").status_code == 404
