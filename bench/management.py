"""Times of the management API with 10,000 projects and 100,000 rows of activity."""

import asyncio
import contextlib
import http.client
import itertools
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bench import managed, managed_work, servers
from bench.managed import Place, Rows
from bench.report import Figure, Section
from bench.settings import Settings

_REQUESTS, _WARM_UP = 120, 20
_READ_MS, _LIST_MS, _MORE_MS = 5.0, 20.0, 3.0
_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
_SQL = json.dumps({"sql": "SELECT 1 AS one"})
_TEXT = (
    "Medians of {requests} requests over one connection, in turn with the alternative. The "
    "organization has {projects:,} projects and {activity:,} rows of activity. The route alone is "
    "`bench/rivals/bare_route.py`: FastAPI, one select by a key, no credential. Queries go to "
    "`caraway run`, in turn directly and through the service. Processor time of monitors is that "
    "of judging them once a minute with an hour of samples."
)


def measure(settings: Settings) -> Section:
    """Measure over both databases."""
    figures: list[Figure] = []
    with managed.places() as places:
        for kind, place in places.items():
            rows = asyncio.run(managed.fill(place))
            figures += _requests(_NAMES[kind], place, rows, places["sqlite"])
            figures += asyncio.run(managed_work.measure(_NAMES[kind], place, rows))
    text = _TEXT.format(
        requests=_REQUESTS, projects=managed.PROJECTS, activity=managed.ACTIVITY
    )  # fmt: skip
    return Section("management", figures, text)


@dataclass(frozen=True, slots=True)
class _Sender:
    """Sends one request again and again over a kept connection."""

    connection: http.client.HTTPConnection
    method: str
    path: str
    headers: dict[str, str]
    body: str | None = None

    def send(self) -> bytes:
        """Send the request, and return the body of the response."""
        self.connection.request(self.method, self.path, self.body, self.headers)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{self.path}: {answer.status} {body[:200]!r}")
        return body

    def send_ms(self) -> float:
        """Send the request, and return how long the whole response took."""
        began = time.perf_counter()
        self.send()
        return (time.perf_counter() - began) * 1_000


def _in_turn(*senders: _Sender, settle: Callable[[], None] | None = None) -> list[float]:
    """Return the median of each sender. `settle` waits until a request has no work under way."""
    for each in senders:
        # The server may have closed one that was idle. It is opened again by itself.
        each.connection.close()
    rounds: list[list[float]] = []
    for _ in range(_WARM_UP + _REQUESTS):
        rounds.append([])
        for each in senders:
            rounds[-1].append(each.send_ms())
            if settle is not None:
                settle()
    return [statistics.median(column) for column in zip(*rounds[_WARM_UP:], strict=True)]


def _requests(name: str, place: Place, rows: Rows, embedded: Place) -> list[Figure]:
    project = rows.project_ids[len(rows.project_ids) // 2]
    key = asyncio.run(managed.make_key(place, project))
    manifest = place.folder / "caraway.yaml"
    manifest.write_text(
        f"{managed.MANIFEST}runtime: {{auth: {{api-key: {{keys: ['{key}:rw']}}}}}}\ndatasets: []\n"
    )
    with servers.caraway(manifest) as (runtime, _), _bare(embedded) as bare:
        asyncio.run(managed.set_endpoint(place, project, runtime))
        with managed.serving(place) as (url, _):
            api, direct, alone = map(_connect, (url, runtime, bare))
            tokens = itertools.cycle(rows.tokens)
            # The rates count each credential, so each figure has one of its own.
            route = _Sender(alone, "GET", f"/projects/{rows.project_ids[0]}", {})
            figures = [
                _reading(f"{label}, {name}", _sender(api, next(tokens), path), route, goal_ms)
                for label, path, goal_ms in _paths(project, len(rows.project_ids))
            ]

            def asking(tail: str, path: str = f"/v1/projects/{project}/queries") -> _Sender:
                return _sender(api, next(tokens), f"{path}{tail}")

            for label, method, body in (("a list", "GET", None), ("a submission", "POST", _SQL)):
                tail = "?limit=1" if method == "GET" else ""
                typed = {"content-type": "application/json"} if body else {}
                figures.append(
                    _passing(
                        f"{label} of queries through the service, {name}; directly",
                        _Sender(
                            direct, method, f"/v1/queries{tail}", {"x-api-key": key, **typed}, body
                        ),
                        _sender(
                            api, next(tokens), f"/v1/projects/{project}/queries{tail}", method, body
                        ),
                        partial(_wait_until_done, asking) if body else None,
                    )
                )
    return figures


def _paths(project: int, projects: int) -> Sequence[tuple[str, str, float]]:
    last = projects - 100
    return (
        ("`GET /v1/limits`", "/v1/limits", _READ_MS),
        ("`GET /v1/projects/{id}`", f"/v1/projects/{project}", _READ_MS),
        ("100 projects", "/v1/projects?limit=100", _LIST_MS),
        ("the last 100 projects by `offset`", f"/v1/projects?limit=100&offset={last}", _LIST_MS),
        ("100 rows of activity", "/v1/activity?limit=100", _LIST_MS),
        ("old rows of activity by `cursor`", "/v1/activity?limit=100&cursor=c1000", _LIST_MS),
        ("activity of a project", f"/v1/activity?project_id={project}", _LIST_MS),
        ("activity of an action that nobody did", "/v1/activity?action=nothing", _LIST_MS),
    )


def _sender(
    api: http.client.HTTPConnection,
    token: str,
    path: str,
    method: str = "GET",
    body: str | None = None,
) -> _Sender:
    typed = {"content-type": "application/json"} if body else {}
    return _Sender(api, method, path, {"authorization": f"Bearer {token}", **typed}, body)


def _reading(name: str, ours: _Sender, route: _Sender, goal_ms: float) -> Figure:
    ours_ms, route_ms = _in_turn(ours, route)
    return Figure(
        f"{name}; a route alone", f"{ours_ms:.1f} ms", f"{route_ms:.1f} ms", ours_ms / route_ms,
        f"≤ {goal_ms:g} ms", ours_ms <= goal_ms,
    )  # fmt: skip


def _wait_until_done(senders: Callable[[str], _Sender]) -> None:
    """Wait until a runtime has no query to run. The service is asked, so that both are at work."""
    for status in ("pending", "running"):
        while json.loads(senders(f"?limit=1&status={status}").send())["total_count"]:
            pass


def _passing(
    name: str, direct: _Sender, through: _Sender, settle: Callable[[], None] | None
) -> Figure:
    direct_ms, through_ms = _in_turn(direct, through, settle=settle)
    return Figure(
        name, f"{through_ms:.1f} ms", f"{direct_ms:.1f} ms", through_ms / direct_ms,
        f"at most {_MORE_MS:g} ms more", through_ms - direct_ms <= _MORE_MS,
    )  # fmt: skip


class _Connection(http.client.HTTPConnection):
    """A kept connection, whose bodies do not wait for the acknowledgement of their headers."""

    def connect(self) -> None:
        """Connect."""
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _connect(url: str) -> http.client.HTTPConnection:
    return _Connection(urlsplit(url).netloc, timeout=60)


@contextlib.contextmanager
def _bare(place: Place) -> Iterator[str]:
    """Serve the route alone over the embedded database; yield its address."""
    port = servers.unused_port()
    module = "bench.rivals.bare_route"
    command = [sys.executable, "-m", module, str(place.url.database), str(port)]
    process = subprocess.Popen(command, cwd=Path(__file__).parent.parent)
    try:
        url = f"http://127.0.0.1:{port}"
        servers.wait_until_it_answers(f"{url}/openapi.json")
        yield url
    finally:
        servers.end(process)
