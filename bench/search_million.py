"""A million documents on three executors: whether they fit into the limit, and what they take."""

import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import clusters, searched
from bench.report import Figure, Section
from bench.search import Connection, executors_mb, manifest
from bench.settings import Settings

_ROWS, _EXECUTORS = 1_000_000, 3
_LIMIT_MB = 2048
_QUERIES = 20
_NAME = "both"


def measure(_settings: Settings) -> Section:
    """Load the documents, wait for both indexes, and search by vectors and words."""
    texts = searched.queries(_QUERIES)
    with TemporaryDirectory() as folder:
        documents = Path(folder) / "documents.parquet"
        searched.documents(documents, _ROWS)
        size_mb = documents.stat().st_size / 1024 / 1024
        path = manifest(Path(folder), _NAME)
        # Otherwise the start of the cluster waits for the load.
        early = "    ready_state: on_registration\n    acceleration:"
        path.write_text(path.read_text().replace("    acceleration:", early))
        flags = ["--memory", f"{_LIMIT_MB}MiB"]
        with clusters.cluster(path, executors=_EXECUTORS, flags=flags) as cluster:
            connection = Connection(cluster.url)
            empty_mb = executors_mb(cluster)
            began_s = time.perf_counter()
            connection.wait_until_loaded(_NAME)
            loaded_s = time.perf_counter() - began_s
            loaded_mb = executors_mb(cluster)
            began_s = time.perf_counter()
            connection.wait_until_indexed(_NAME)
            built_s = time.perf_counter() - began_s
            for text in texts:  # The vector of each text is known after its first search.
                connection.search(_NAME, text)
            median = statistics.median(connection.time(_NAME, text) for text in texts)
            filtered = statistics.median(connection.time(_NAME, text, "part = 7") for text in texts)
            used_mb = executors_mb(cluster)
    limit_mb = _EXECUTORS * _LIMIT_MB
    each_bytes = (used_mb - empty_mb) * 1024 * 1024 / _ROWS
    text = (
        f"{size_mb:,.0f} MB of Parquet were loaded in {loaded_s:.0f} s. {built_s:.0f} s after "
        f"that, both indexes answered. A document takes {each_bytes:,.0f} bytes of the executors' "
        f"resident memory, 1,536 of them for its vector; without documents they have "
        f"{empty_mb:,.0f} MB, and after the load, before the indexes, {loaded_mb:,.0f} MB. A "
        f"hybrid search takes {median:.1f} ms, and {filtered:.1f} ms where 1 % pass."
    )
    figure = Figure(
        "memory of three executors with 1,000,000 documents; their limits",
        f"{used_mb:,.0f} MB", f"{limit_mb:,} MB", used_mb / limit_mb, "≤ 1", used_mb <= limit_mb,
    )  # fmt: skip
    return Section("search-million", [figure], text)
