"""Change events ingested by a cluster: their rate, and when they become visible."""

import http.client
import json
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import orjson
import pyarrow as pa

from bench import asking, clusters
from bench.report import Figure, Section
from bench.settings import Settings

_ROWS, _BATCH, _CONNECTIONS, _SECONDS = 1_000_000, 1000, 8, 15.0
_BODIES = 48
_GOAL = 50_000
MANIFEST = """\
version: v1
kind: Caraway
name: changing
datasets:
  - from: cdc:orders
    name: orders
    columns:
      - {name: id, type: bigint}
      - {name: customer, type: text}
      - {name: amount, type: double}
      - {name: lines, type: int}
    acceleration: {enabled: true, engine: file, primary_key: id}
"""


def measure(settings: Settings) -> Section:
    """Send updates of a million rows to two single-core executors, eight requests at a time."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text(MANIFEST)
        with clusters.cluster(manifest, executors=2) as cluster:
            sender = Sender(cluster.url)
            sender.load_rows()
            speed, waits = sender.send_updates()
            seen_s = sender.measure_lag()
        theirs = _duckdb(Path(folder) / "orders.db")
    figures = [
        Figure(
            "changes per second in batches of 1,000, durable and visible, 8 concurrent requests to "
            "two single-core executors; DuckDB in process, DELETE and INSERT of 1,000 rows per "
            "transaction",
            f"{speed:,.0f}/s", f"{theirs:,.0f}/s", speed / theirs,
            f"≥ {_GOAL:,} per second", speed >= _GOAL,
        )
    ]  # fmt: skip
    ordered = sorted(waits)
    text = (
        f"The median request took {statistics.median(ordered) * 1000:.0f} ms, the 99th percentile "
        f"was {ordered[int(len(ordered) * 0.99)] * 1000:.0f} ms. A query sent after the 200 "
        f"response always reads the change; it took {seen_s * 1000:.0f} ms."
    )
    return Section("ingest", figures, text)


class Sender:
    """Clients that send batches of change events to the dataset of `MANIFEST`."""

    def __init__(self, url: str) -> None:
        self._url = url.removeprefix("http://")
        self._address = url
        self._bodies = [_body(seed) for seed in range(_BODIES)]

    def load_rows(self) -> None:
        """Insert all rows."""
        connection = http.client.HTTPConnection(self._url, timeout=90)
        for start in range(0, _ROWS, 20_000):
            _send(connection, orjson.dumps([_event(n, n) for n in range(start, start + 20_000)]))

    def send_updates(self, seconds: float = _SECONDS) -> tuple[float, list[float]]:
        """Return the changes per second, and the duration of each request."""
        waits: list[float] = []
        began = time.perf_counter()

        def work(number: int) -> None:
            connection = http.client.HTTPConnection(self._url, timeout=90)
            for turn in range(1 << 30):
                if time.perf_counter() - began > seconds:
                    return
                sent = time.perf_counter()
                _send(connection, self._bodies[(turn * _CONNECTIONS + number) % _BODIES])
                waits.append(time.perf_counter() - sent)

        threads = [threading.Thread(target=work, args=(each,)) for each in range(_CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(waits) * _BATCH / (time.perf_counter() - began), waits

    def measure_lag(self) -> float:
        """Change rows and read them immediately; return the median duration of the reads."""
        connection = http.client.HTTPConnection(self._url, timeout=90)
        took = []
        for number in range(20):
            _send(connection, orjson.dumps([_event(number, -7 - number)]))
            began = time.perf_counter()
            found = asking.ask(self._address, f"SELECT lines FROM orders WHERE id = {number}")
            took.append(time.perf_counter() - began)
            if found.rows["lines"].to_pylist() != [-7 - number]:
                raise RuntimeError(f"an acknowledged change is not visible: {found.rows}")
        return statistics.median(took)


def _event(id_: int, lines: int) -> dict[str, object]:
    after = {"id": id_, "customer": f"customer {id_ % 9973}", "amount": id_ / 7, "lines": lines}
    return {"op": "u", "before": None, "after": after}


def _body(seed: int) -> bytes:
    chosen = random.Random(seed)
    return orjson.dumps([_event(chosen.randrange(_ROWS), seed) for _ in range(_BATCH)])


def _send(connection: http.client.HTTPConnection, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    connection.request("POST", "/v1/datasets/orders/cdc", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(text.decode())


def _duckdb(file: Path) -> float:
    """Upsert the same batches into a DuckDB file, one transaction per batch."""
    connection = duckdb.connect(str(file))
    rows = pa.table(
        {
            "id": pa.array(range(_ROWS)),
            "customer": [f"customer {n % 9973}" for n in range(_ROWS)],
            "amount": [n / 7 for n in range(_ROWS)],
            "lines": pa.array(range(_ROWS), pa.int32()),
        }
    )
    connection.register("loaded", rows)
    connection.sql("CREATE TABLE orders AS FROM loaded")
    count, began = 0, time.perf_counter()
    for batch in _batches():
        connection.register("batch", batch)
        connection.sql("BEGIN")
        connection.sql("DELETE FROM orders WHERE id IN (SELECT id FROM batch)")
        connection.sql("INSERT INTO orders FROM batch")
        connection.sql("COMMIT")
        count += batch.num_rows
    took = time.perf_counter() - began
    connection.close()
    return count / took


def _batches() -> Iterator[pa.Table]:
    for seed in range(_BODIES):
        events = json.loads(_body(seed))
        unique = {each["after"]["id"]: each["after"] for each in events}
        yield pa.Table.from_pylist(list(unique.values()))
