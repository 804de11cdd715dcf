"""Searches of 200,000 documents on two executors: time, recall, rate, memory and build time.

LanceDB, used as a library behind uvicorn, searches the same vectors in the same run.
"""

import contextlib
import http.client
import json
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench import children, clusters, searched
from bench.report import Figure, Section
from bench.settings import Settings
from caraway_core.protocols.embedding import EmbedderSpec

_ROWS = 200_000
_QUERIES = 60
_LIMIT = 10
_CONNECTIONS, _SECONDS = 8, 5.0
_LOADED_S = 600.0
_ROUNDS = 5
_GOALS_MS = {"by_vector": 6.0, "by_text": 4.0, "both": 10.0}
_TITLES = {"by_vector": "vectors", "by_text": "three words", "both": "both"}
_FILTER = "part = 7"
_MODEL = "builtin:minilm"
_VECTORS = f"embeddings: [{{from: '{_MODEL}', row_id: id}}]"
_WORDS = "full_text_search: {enabled: true, row_id: id}"
_COLUMNS = {"by_vector": [_VECTORS], "by_text": [_WORDS], "both": [_VECTORS, _WORDS]}


def measure(_settings: Settings) -> Section:
    """Measure one dataset after the other, each on a cluster of its own."""
    texts = searched.queries(_QUERIES)
    figures: list[Figure] = []
    notes: list[str] = []
    with TemporaryDirectory() as folder:
        documents = Path(folder) / "documents.parquet"
        searched.documents(documents, _ROWS)
        vectors = _embedded(texts)
        for name in _COLUMNS:
            with clusters.cluster(manifest(Path(folder), name), executors=2) as cluster:
                figures += _times(cluster, name, texts, notes)
                if name == "by_vector":
                    figures.append(_recall(cluster.url, texts, vectors, documents))
                    figures.append(_against_lance(cluster.url, texts, vectors, documents))
    return Section("search", figures, " ".join(notes))


def manifest(folder: Path, name: str) -> Path:
    """Write a manifest whose dataset is searched as its name says."""
    path = folder / f"{name}.yaml"
    columns = "\n".join(f"        {each}" for each in _COLUMNS[name])
    path.write_text(
        "version: v1\nkind: Caraway\nname: search\n"
        "runtime:\n  caching: {search_results: {enabled: false}}\n"
        f"datasets:\n  - from: file:{folder / 'documents.parquet'}\n    name: {name}\n"
        f"    acceleration: {{enabled: true}}\n    columns:\n      - name: body\n{columns}\n"
    )
    return path


def _times(
    cluster: clusters.Cluster, name: str, texts: Sequence[str], notes: list[str]
) -> list[Figure]:
    connection = Connection(cluster.url)
    connection.wait_until_loaded(name)
    before = executors_mb(cluster)
    began_s = time.perf_counter()
    connection.wait_until_indexed(name)
    built_s = time.perf_counter() - began_s
    grown = (executors_mb(cluster) - before) * 1024 * 1024 / _ROWS
    notes.append(
        f"{_TITLES[name]}: {built_s:.1f} s after the load the index answered; meanwhile the "
        f"executors grew by {grown:.0f} bytes for each document."
    )
    # The vector of each text is known after its first search.
    for text in texts:
        connection.search(name, text)
    # In turns: for some seconds the machine is a third slower than for others.
    took: dict[str | None, list[float]] = {None: [], _FILTER: []}
    for where in [None, _FILTER] * _ROUNDS:
        took[where] += [connection.time(name, text, where) for text in texts]
    plain, filtered = statistics.median(took[None]), statistics.median(took[_FILTER])
    goal = _GOALS_MS[name]
    return [
        Figure(f"search by {_TITLES[name]}, median; the goal", f"{plain:.1f} ms", f"{goal:g} ms",
               plain / goal, "≤ 1", plain <= goal),
        Figure(f"search by {_TITLES[name]} where 1 % pass, median; without a filter",
               f"{filtered:.1f} ms", f"{plain:.1f} ms", filtered / plain, "≤ 2",
               filtered <= 2 * plain),
    ]  # fmt: skip


def _recall(url: str, texts: Sequence[str], vectors: searched.Vectors, documents: Path) -> Figure:
    stored = searched.vectors_of(documents)
    connection = Connection(url)
    hits = 0
    nearest = searched.nearest(stored, vectors, _LIMIT)
    for text, wanted in zip(texts, nearest, strict=True):
        found = [each["primary_key"]["id"] for each in connection.search("by_vector", text)]
        hits += len({*found} & {*wanted})
    recall = hits / (_LIMIT * len(texts))
    return Figure("recall@10 of vectors without clusters; exact search", f"{recall:.3f}", "1",
                  recall, "≥ 0.98", recall >= 0.98)  # fmt: skip


def _against_lance(
    url: str, texts: Sequence[str], vectors: searched.Vectors, documents: Path
) -> Figure:
    with _lance(texts, vectors, documents) as other:
        ours, theirs = [], []
        for _ in range(3):
            ours.append(_rate(url, "by_vector", texts))
            theirs.append(_rate(other, "by_vector", texts))
    mine, its = statistics.median(ours), statistics.median(theirs)
    return Figure(
        f"searches by vectors, {_CONNECTIONS} connections; LanceDB behind uvicorn, IVF_HNSW_SQ",
        f"{mine:.0f} /s", f"{its:.0f} /s", mine / its, "≥ 2", mine >= 2 * its,
    )  # fmt: skip


@contextlib.contextmanager
def _lance(texts: Sequence[str], vectors: searched.Vectors, documents: Path) -> Iterator[str]:
    known = documents.with_name("vectors.json")
    pairs = zip(texts, vectors, strict=True)
    known.write_text(json.dumps({text: vector.tolist() for text, vector in pairs}))
    command = [str(children.other_python()), "-m", "bench.rivals.lance_server",
               str(documents), str(known)]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()


class Connection:
    """A persistent connection that searches."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=600)

    def search(self, dataset: str, text: str, where: str | None = None) -> list[Any]:
        """Return the results of a search.

        Raises:
            RuntimeError: it failed.
        """
        asked = {"text": text, "datasets": [dataset], "limit": _LIMIT}
        asked |= {"additional_columns": ["part"]} | ({"where": where} if where else {})
        headers = {"Content-Type": "application/json", "Cache-Control": "no-cache"}
        self._connection.request("POST", "/v1/search", json.dumps(asked), headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(body.decode(errors="replace"))
        found: list[Any] = json.loads(body)["results"]
        return found

    def time(self, dataset: str, text: str, where: str | None = None) -> float:
        """Return the milliseconds of a search."""
        began_s = time.perf_counter()
        self.search(dataset, text, where)
        return (time.perf_counter() - began_s) * 1000

    def wait_until_loaded(self, dataset: str) -> None:
        """Wait until the dataset is ready."""
        deadline_s = time.monotonic() + _LOADED_S
        while True:
            self._connection.request("GET", "/v1/datasets?status=true")
            states = json.loads(self._connection.getresponse().read())
            if all(each["status"] == "ready" for each in states if each["name"] == dataset):
                return
            if time.monotonic() > deadline_s:
                raise RuntimeError(f"'{dataset}' is not loaded after {_LOADED_S:.0f} s")
            time.sleep(0.2)

    def wait_until_indexed(self, dataset: str) -> None:
        """Wait until an index answers every kind of search of the dataset."""
        kinds = ["vector"] * (dataset != "by_text") + ["text"] * (dataset != "by_vector")
        deadline_s = time.monotonic() + _LOADED_S
        for kind in kinds:
            asked = f"EXPLAIN SELECT id FROM {kind}_search({dataset}, 'one two') LIMIT 10"
            while True:
                self._connection.request("POST", "/v1/sql", asked, {"Cache-Control": "no-cache"})
                told = self._connection.getresponse().read().decode()
                if "segments=" in told and "not_indexed" not in told:
                    break
                if time.monotonic() > deadline_s:
                    raise RuntimeError(f"no index after {_LOADED_S:.0f} s: {told}")
                time.sleep(0.2)


def _rate(url: str, dataset: str, texts: Sequence[str]) -> float:
    """Search over several connections at once, and return the searches per second."""
    counts = [0] * _CONNECTIONS
    began_s = time.perf_counter()

    def run(number: int) -> None:
        connection = Connection(url)
        while time.perf_counter() - began_s < _SECONDS:
            found = connection.search(dataset, texts[(number * 7 + counts[number]) % len(texts)])
            assert len(found) == _LIMIT
            counts[number] += 1

    threads = [threading.Thread(target=run, args=(n,)) for n in range(_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began_s)


def _embedded(texts: Sequence[str]) -> searched.Vectors:
    model = EmbedderSpec("bench", "builtin", "minilm").build()
    found = model.embed(texts).vectors.flatten().to_numpy()
    model.close()
    return np.asarray(found, np.float32).reshape(-1, searched.DIMENSIONS)


def executors_mb(cluster: clusters.Cluster) -> float:
    """The resident memory of the executors, as they report it."""
    connection = http.client.HTTPConnection(cluster.url.removeprefix("http://"), timeout=30)
    connection.request("GET", "/v1/cluster/executors")
    found = json.loads(connection.getresponse().read())
    listed = found["executors"] if isinstance(found, dict) else found
    return sum(float(each.get("memory_used_bytes") or 0) for each in listed) / 1024 / 1024
