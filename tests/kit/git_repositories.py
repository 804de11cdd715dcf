"""Git repositories in folders, and a server that serves them over HTTP."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOKEN = "token-of-a-repository"


class Repository:
    """A repository in a folder, with one commit for each write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"file://{folder}"
        folder.mkdir(parents=True)
        self.run("init", "--quiet", "--initial-branch=trunk")

    def commit(
        self, files: dict[str, str | bytes], message: str = "Change", branch: str = "trunk"
    ) -> str:
        if branch != "trunk":
            self.run("checkout", "--quiet", "-B", branch)
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.run("add", "--all")
        self.run("commit", "--quiet", "--allow-empty", "-m", message)
        sha = self.run("rev-parse", "HEAD")
        if branch != "trunk":
            self.run("checkout", "--quiet", "trunk")
        return sha

    def run(self, *arguments: str) -> str:
        environment = {
            **os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.com",
        }  # fmt: skip
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, check=True, capture_output=True
        )
        return done.stdout.decode().strip()


class GitServer(ThreadingHTTPServer):
    """Serves the repositories of a folder by `git http-backend`.

    Those below `private/` need the token, `moved/` redirects to `acme/`, `away/` fails, and
    `slow/` never answers.
    """

    daemon_threads = False

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.paths: list[str] = []
        self.sent_bytes = 0
        self.asked_slowly = threading.Event()
        self.ends = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: GitServer

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers["content-length"])))

    def _serve(self, body: bytes) -> None:
        self.server.paths.append(self.path)
        match self.path.split("/")[1]:
            case "slow":
                self.server.asked_slowly.set()
                self.server.ends.wait()
            case "away":
                self._answer(503)
            case "moved":
                self._answer(301, ("location", self.path.replace("/moved/", "/acme/")))
            case "private" if not self._is_known():
                self._answer(401, ("www-authenticate", 'Basic realm="git"'))
            case _:
                self._run(body)

    def _is_known(self) -> bool:
        wanted = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
        return self.headers["authorization"] == f"Basic {wanted}"

    def _run(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
            "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers["content-type"] or "",
            "HTTP_CONTENT_ENCODING": self.headers["content-encoding"] or "",
            "GIT_PROTOCOL": self.headers["git-protocol"] or "",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "uploadpack.allowFilter", "GIT_CONFIG_VALUE_0": "true",
        }  # fmt: skip
        # It fails if a commit is unknown, and its output says so.
        done = subprocess.run(
            ["git", "http-backend"], env=environment, input=body, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        self._answer(status, *headers.items(), content=content)

    def _answer(self, status: int, *headers: tuple[str, str], content: bytes = b"") -> None:
        self.server.sent_bytes += len(content)
        self.send_response(status)
        for name, value in (*headers, ("content-length", str(len(content)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Write nothing to the output of the tests."""


@contextmanager
def serving(root: Path) -> Iterator[GitServer]:
    """Serve the repositories of a folder until the block ends."""
    server = GitServer(root)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.ends.set()
        server.shutdown()
        thread.join()
        server.server_close()
