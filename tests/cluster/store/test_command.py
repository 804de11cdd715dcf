"""`caraway store` in a process."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.cluster.store.store_requests import CONTENT, PATH, SIGNED
from tests.kit.deadlines import until
from tests.kit.remote_stores import remote_store

RUN = (sys.executable, "-m", "caraway", "store")


def refused(*flags: str, **environ: str) -> str:
    told = subprocess.run(
        [*RUN, *flags], capture_output=True, text=True, timeout=30, env={**os.environ, **environ}
    )
    assert (told.returncode, told.stdout) == (1, "")
    return told.stderr


def test_it_serves_and_stops(tmp_path: Path) -> None:
    with remote_store(tmp_path, "--log-format", "json") as store:
        with httpx.Client(base_url=f"http://{store.address}", headers=SIGNED) as client:
            assert client.get("/health").text == "ok\n"
            assert client.put(PATH, content=CONTENT).status_code == 201
            assert client.get("/metrics").status_code == 404
        assert store.terminate() == 0
        log = store.log.read_text()
        assert '"event": "store is up"' in log and '"event": "store stopped"' in log
        assert "tok-en" not in log


def test_running_requests_finish_when_it_stops(tmp_path: Path) -> None:
    with remote_store(tmp_path) as store:
        host, _, port = store.address.partition(":")
        with socket.create_connection((host, int(port)), 10) as connection:
            head = (
                f"PUT {PATH} HTTP/1.1\r\nHost: s\r\nAuthorization: {SIGNED['authorization']}\r\n"
                f"Content-Length: {len(CONTENT)}\r\n\r\n"
            )
            connection.sendall(head.encode() + CONTENT[:100])
            workshop = store.data / ".unfinished"
            until(lambda: list(workshop.iterdir()), "the upload has started")
            assert store.process is not None
            store.process.terminate()
            connection.sendall(CONTENT[100:])
            assert connection.recv(100).startswith(b"HTTP/1.1 201")
        assert store.process.wait(20) == 0


def test_unfinished_chunks_of_a_killed_store_are_removed(tmp_path: Path) -> None:
    with remote_store(tmp_path) as store:
        store.kill()
        (store.data / ".unfinished" / "left").write_bytes(b"half")
        store.start()
        assert not list((store.data / ".unfinished").iterdir())
        assert "unfinished chunks removed count=1" in store.log.read_text()


def test_too_many_connections_are_refused(tmp_path: Path) -> None:
    with remote_store(tmp_path, "--max-connections", "1") as store:
        url = f"http://{store.address}/health"
        host, port = store.address.rsplit(":", 1)
        with httpx.Client() as client:
            # One that is idle makes room for the next.
            with httpx.Client() as idle:
                assert {idle.get(url).status_code, client.get(url).status_code} == {200}
            with socket.create_connection((host, int(port))) as busy:
                busy.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")

                def status() -> int:
                    with httpx.Client() as another:
                        return another.get(url).status_code

                until(lambda: status() == 503, "a request that is not finished keeps its place")


def test_a_missing_token_file_is_reported(tmp_path: Path) -> None:
    told = refused("--dir", str(tmp_path / "d"), CARAWAY_TOKEN_FILE=str(tmp_path / "none"))
    assert told.startswith("error: cannot read the token file") and "--token-file" in told


def test_an_unusable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "file").write_text("")
    told = refused(
        "--dir", str(tmp_path / "file" / "d"), "--token-file", str(tmp_path / "token"),
        "--listen", "127.0.0.1:0",
    )  # fmt: skip
    assert told.startswith("error: cannot store chunks in") and "--dir DIR" in told


def test_an_address_in_use_is_reported(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = refused(
            "--dir", str(tmp_path / "d"), "--token-file", str(tmp_path / "token"),
            CARAWAY_LISTEN=f"127.0.0.1:{port}",
        )  # fmt: skip
    assert told.startswith(f"error: cannot listen on 127.0.0.1:{port}: Address already in use")


@pytest.mark.parametrize("flags", [("--listen", "x"), ("--max-chunk", "lots")])
def test_invalid_options_are_usage_errors(flags: tuple[str, str]) -> None:
    told = subprocess.run([*RUN, *flags], capture_output=True, text=True, timeout=30)
    assert told.returncode == 2 and flags[0] in told.stderr
