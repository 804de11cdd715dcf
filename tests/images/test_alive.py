"""The health check of the images, against a real server."""

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docker" / "alive"


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers every request with the status that its server has."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.HTTPServer):
    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[str] = []


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def check(address: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], env={"CARAWAY_METRICS": address}, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip


def test_a_process_that_answers_is_alive(server: Server) -> None:
    assert check(f"0.0.0.0:{server.server_port}").returncode == 0
    assert server.asked == ["/health"]


def test_another_place_can_be_asked(server: Server) -> None:
    assert check("0.0.0.0:1", f"{server.server_port}/healthz").returncode == 0
    assert server.asked == ["/healthz"]


def test_one_that_answers_with_an_error_is_not(server: Server) -> None:
    server.status = 503
    done = check(f"0.0.0.0:{server.server_port}")
    assert done.returncode == 1
    assert "503" in done.stderr


def test_one_that_does_not_answer_is_not() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as closed:
        port = closed.server_port
    done = check(f"0.0.0.0:{port}")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"no answer on port {port}" in done.stderr
