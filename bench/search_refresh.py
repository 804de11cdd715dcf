"""Compares the times of searches during refreshes and changes with those at rest.

One process serves two datasets: `docs`, with vectors of its source, is refreshed with other rows,
and `changing`, whose texts the runtime embeds, takes changes.
"""

import http.client
import itertools
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import searched, servers
from bench.report import Figure, Section
from bench.settings import Settings

_ROWS, _CHANGING, _BATCH = 20_000, 5_000, 100
_ROUNDS, _REST_S, _INGEST_S, _REFRESHES = 3, 5.0, 10.0, 2
_PAUSE_S = 0.2
"""Between the requests with changes: 500 rows a second at most."""
_READY_S = 300.0
_QUERIES = 50
_WORDS_IN_CHANGE = 12
_GOAL = 3.0
_MANIFEST = """\
version: v1
kind: Caraway
name: refreshed
runtime: {caching: {search_results: {enabled: false}}}
datasets:
  - from: file:docs.parquet
    name: docs
    acceleration: {enabled: true, primary_key: id}
    columns:
      - name: body
        embeddings: [{from: 'builtin:minilm'}]
        full_text_search: {enabled: true}
  - from: cdc:changing
    name: changing
    columns:
      - {name: id, type: bigint}
      - name: body
        type: text
        embeddings: [{from: 'builtin:wordllama'}]
        full_text_search: {enabled: true}
    acceleration: {enabled: true, primary_key: id}
"""
Times = list[float]


def measure(_settings: Settings) -> Section:
    """Search in turns: at rest, during refreshes and during changes."""
    with tempfile.TemporaryDirectory() as folder:
        manifest, table = Path(folder) / "caraway.yaml", Path(folder) / "docs.parquet"
        manifest.write_text(_MANIFEST)
        searched.documents(table, _ROWS)
        with servers.caraway(manifest) as (url, _):
            server = _Server(url.removeprefix("http://"), table)
            server.load()
            rest: dict[str, Times] = {"docs": [], "changing": []}
            busy: dict[str, Times] = {"docs": [], "changing": []}
            for _ in range(_ROUNDS):
                server.make_documents()
                for name, work in (("docs", server.refresh), ("changing", server.change)):
                    rest[name] += server.searches(name, lambda: time.sleep(_REST_S))
                    busy[name] += server.searches(name, work)
    figures = [
        _figure(f"hybrid search of {_ROWS:,} documents while they are refreshed",
                rest["docs"], busy["docs"]),
        _figure(f"hybrid search of a dataset that takes {server.changes_per_s:,.0f} changes a "
                "second", rest["changing"], busy["changing"]),
    ]  # fmt: skip
    counts = (f"{len(times):,}" for times in (*rest.values(), *busy.values()))
    text = f"Searches, in the order of the columns: {', '.join(counts)}."
    return Section("search-refresh", figures, text)


class _Server:
    """The runtime under test, and what happens to its datasets."""

    def __init__(self, address: str, table: Path) -> None:
        self._address = address
        self._table = table
        self._seeds = itertools.count(100)
        self._chosen = random.Random(7)
        self._words = searched.vocabulary()
        self._queries = searched.queries(_QUERIES)
        self._sent, self._took_s = 0, 0.0
        self._made: list[Path] = []

    @property
    def changes_per_s(self) -> float:
        """The changes that were taken in each second."""
        return self._sent / self._took_s

    def load(self) -> None:
        """Wait for the documents, insert the changing rows and run each query once."""
        with self._connection() as ask:
            _until(lambda: ask("GET", "/v1/ready")[0] == http.client.OK, "the runtime is ready")
            for first in range(0, _CHANGING, _BATCH):
                self._send(ask, range(first, first + _BATCH))
            for name in ("docs", "changing"):
                for query in self._queries:
                    self._search(ask, name, query)

    def searches(self, name: str, work: Callable[[], None]) -> Times:
        """Search one after the other while some work is done; return the times in seconds."""
        times: Times = []
        failed: list[BaseException] = []
        ended = threading.Event()

        def run() -> None:
            try:
                work()
            except BaseException as exc:  # noqa: BLE001 -- the main thread raises it
                failed.append(exc)
            finally:
                ended.set()

        worker = threading.Thread(target=run)
        worker.start()
        with self._connection() as ask:
            for query in itertools.cycle(self._queries):
                if ended.is_set():
                    break
                began_s = time.perf_counter()
                self._search(ask, name, query)
                times.append(time.perf_counter() - began_s)
        worker.join()
        if failed:
            raise failed[0]
        return times

    def make_documents(self) -> None:
        """Write what will be loaded: this process also takes the times, so not meanwhile."""
        for number in range(_REFRESHES):
            self._made.append(self._table.with_suffix(f".{number}"))
            searched.documents(self._made[-1], _ROWS, next(self._seeds))

    def refresh(self) -> None:
        """Load other documents, a few times, and wait until they are read."""
        with self._connection() as ask:
            while self._made:
                self._made.pop().replace(self._table)
                before = _version(ask)
                status, body = ask("POST", "/v1/datasets/docs/acceleration/refresh")
                if status != http.client.CREATED:
                    raise RuntimeError(f"no refresh: {body!r}")
                _until(partial(_is_after, ask, before), "the refresh is done")

    def change(self) -> None:
        """Change rows for some seconds."""
        with self._connection() as ask:
            began_s = time.perf_counter()
            while time.perf_counter() - began_s < _INGEST_S:
                self._sent += _BATCH
                self._send(ask, self._chosen.sample(range(_CHANGING), _BATCH))
                time.sleep(_PAUSE_S)
            self._took_s += time.perf_counter() - began_s

    def _send(self, ask: "_Ask", ids: Sequence[int]) -> None:
        events = [
            {"op": "u", "before": None, "after": {"id": id_, "body": self._text()}} for id_ in ids
        ]
        status, body = ask("POST", "/v1/datasets/changing/cdc", events)
        if status != http.client.OK:
            raise RuntimeError(f"the changes were refused: {body!r}")

    def _text(self) -> str:
        return " ".join(self._chosen.choices(self._words, k=_WORDS_IN_CHANGE))

    def _search(self, ask: "_Ask", name: str, query: str) -> None:
        status, body = ask("POST", "/v1/search", {"text": query, "datasets": [name], "limit": 10})
        if status != http.client.OK:
            raise RuntimeError(f"a search failed: {body!r}")

    @contextmanager
    def _connection(self) -> "Iterator[_Ask]":
        connection = http.client.HTTPConnection(self._address, timeout=120)

        def ask(method: str, path: str, body: object = None) -> tuple[int, bytes]:
            sent = None if body is None else json.dumps(body).encode()
            connection.request(method, path, sent, {"content-type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()

        try:
            yield ask
        finally:
            connection.close()


_Ask = Callable[..., tuple[int, bytes]]


def _figure(name: str, rest: Times, busy: Times) -> Figure:
    ours, theirs = _p99(busy), _p99(rest)
    return Figure(
        f"{name}, 99th percentile; at rest", f"{ours * 1000:.0f} ms", f"{theirs * 1000:.0f} ms",
        ours / theirs, f"≤ {_GOAL:g}", ours <= _GOAL * theirs,
    )  # fmt: skip


def _p99(times: Times) -> float:
    return sorted(times)[int(len(times) * 0.99)]


def _version(ask: _Ask) -> int:
    told = json.loads(ask("GET", "/v1/datasets/docs/acceleration")[1])
    return int(told.get("version", {}).get("number", 0))


def _is_after(ask: _Ask, version: int) -> bool:
    return _version(ask) > version


def _until(look: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _READY_S
    while not look():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {_READY_S:.0f} s: {what}")
        time.sleep(0.1)
