"""Arrow Flight: how fast rows leave and arrive, and lookups by prepared statements."""

import contextlib
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyarrow import flight

from bench import clusters, data, lookups, servers
from bench.report import Figure, Section
from bench.settings import Settings

_ROUNDS = 5
_CONNECTIONS = 8
_SECONDS = 4.0
_UPLOADED = 1_000_000
_LOADED_S = 300.0
_LINEITEM = "SELECT * FROM lineitem"
_LINEITEM_ROWS = 6_001_215
# A proxy of the machine does not lead to this machine.
_DIRECT = [("grpc.enable_http_proxy", 0)]
Timed = Callable[[], float]


def measure(_settings: Settings) -> Section:
    """Compare with the least that Arrow itself takes for the same rows."""
    file = data.plain_strings(data.tpch()) / "lineitem.parquet"
    with TemporaryDirectory() as folder:
        scratch = Path(folder)
        figures = [
            _download(file, scratch),
            _parallel(file, scratch),
            _lookups(scratch),
            _upload(scratch),
        ]
    return Section("flight", figures, "")


def _download(file: Path, folder: Path) -> Figure:
    """DoGet of an accelerated table, and of the same batches without an engine."""
    manifest = _manifest(folder / "download", f"from: file:{file}", "lineitem", "enabled: true")
    with servers.listening(manifest) as (addresses, _), opened(addresses["flight"]) as ours:
        wait_until_loaded(ours, "lineitem", _LINEITEM_ROWS)
        rows = folder / "lineitem.arrow"
        _save(ours, rows)
        with _rival(rows) as theirs:
            pairs = _in_turn(
                lambda: _read_all(ours, ours.get_flight_info(_command(_LINEITEM)).endpoints[0]),
                lambda: _drained(theirs.do_get(flight.Ticket(b"all"))),
            )
    return _figure(
        "DoGet of lineitem (scale 1, 16 columns, accelerated), standalone; pyarrow.flight that "
        "serves the same batches from memory",
        pairs,
        0.8,
    )


def _parallel(file: Path, folder: Path) -> Figure:
    """The same rows from two executors at once, and through the scheduler."""
    manifest = _manifest(
        folder / "parallel",
        f"from: file:{file}",
        "lineitem",
        "enabled: true",
        "runtime: {flight: {parallel_reads: {enabled: true}}}\n",
    )
    with (
        clusters.cluster(manifest, executors=2, flags=["--parallel-reads"]) as cluster,
        opened(cluster.flight) as scheduler,
        contextlib.ExitStack() as stack,
    ):
        wait_until_loaded(scheduler, "lineitem", _LINEITEM_ROWS)
        one = flight.FlightCallOptions(headers=[(b"x-caraway-endpoints", b"one")])
        executors: dict[bytes, Any] = {}

        def at(endpoint: Any) -> Any:
            uri = endpoint.locations[0].uri
            if uri not in executors:
                address = uri.decode().partition("://")[2]
                executors[uri] = stack.enter_context(opened(address))
            return executors[uri]

        def parallel() -> float:
            began = time.perf_counter()
            endpoints = scheduler.get_flight_info(_command(_LINEITEM)).endpoints
            assert len(endpoints) == 2, endpoints
            places = [at(each) for each in endpoints]
            with ThreadPoolExecutor(2) as threads:
                counts = list(threads.map(_count, places, endpoints))
            assert sum(counts) == _LINEITEM_ROWS, counts
            return time.perf_counter() - began

        def through() -> float:
            began = time.perf_counter()
            [endpoint] = scheduler.get_flight_info(_command(_LINEITEM), one).endpoints
            assert _count(scheduler, endpoint, one) == _LINEITEM_ROWS
            return time.perf_counter() - began

        pairs = _in_turn(parallel, through)
    return _figure(
        "the same from two single-core executors at once; through the scheduler", pairs, 1.3
    )


def _lookups(folder: Path) -> Figure:
    """A prepared statement bound and run again and again, and the same over HTTP."""
    import adbc_driver_flightsql.dbapi as adbc

    (folder / "lookups").mkdir()
    manifest = lookups.manifest(folder / "lookups" / "items.parquet")
    with servers.listening(manifest) as (addresses, _):
        url = f"http://{addresses['http']}"
        lookups.wait_until_loaded(url)

        def connection(seed: int, stop: float) -> int:
            chance, done = Random(seed), 0
            with (
                adbc.connect(f"grpc://{addresses['flight']}", autocommit=True) as connected,
                connected.cursor() as cursor,
            ):
                while time.perf_counter() < stop:
                    number = chance.randrange(1_000_000)
                    cursor.execute("SELECT * FROM items WHERE id = ?", (number,))
                    rows = cursor.fetch_arrow_table()
                    assert rows.column("name").to_pylist() == [f"item {number}"]
                    done += 1
            return done

        def prepared() -> float:
            began = time.perf_counter()
            with ThreadPoolExecutor(_CONNECTIONS) as threads:
                stop = began + _SECONDS
                done = sum(threads.map(lambda seed: connection(seed, stop), range(_CONNECTIONS)))
            return (time.perf_counter() - began) / done

        pairs = _in_turn(prepared, lambda: 1 / lookups.rate(url, "/v1/sql"))
    ours, theirs = (1 / statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(other / one for one, other in pairs)
    return Figure(
        f"prepared point lookups over Flight SQL (ADBC), {_CONNECTIONS} connections; the HTTP "
        "route",
        f"{ours:,.0f} /s", f"{theirs:,.0f} /s", ratio, "≥ 2", ratio >= 2,
    )  # fmt: skip


def _upload(folder: Path) -> Figure:
    """DoPut into an accelerated dataset, and the same rows as Arrow files with fsync."""
    rows = uploaded()
    manifest = upload_manifest(folder / "upload", rows.schema)
    with servers.listening(manifest) as (addresses, _), opened(addresses["flight"]) as ours:
        count = 0

        def put() -> float:
            nonlocal count
            took = upload(ours, rows)
            count += rows.num_rows
            return took

        def write() -> float:
            began = time.perf_counter()
            target = folder / "rows.arrow"
            with open(target, "wb") as file:
                with pa.ipc.new_file(file, rows.schema) as sink:
                    sink.write_table(rows, max_chunksize=65_536)
                file.flush()
                os.fsync(file.fileno())
            return time.perf_counter() - began

        pairs = _in_turn(put, write)
        wait_until_loaded(ours, "uploads", count)
    return _figure(
        f"DoPut of {_UPLOADED:,} rows of ten columns into an accelerated dataset; pyarrow writing "
        "them as an Arrow file with fsync",
        pairs,
        0.5,
    )


def upload_manifest(folder: Path, schema: pa.Schema) -> Path:
    """Write a manifest with an accelerated dataset `uploads` that takes these rows."""
    fields = "".join(f"      - {{name: {field.name}, type: {_TYPES[field.type]}}}\n"
                     for field in schema)  # fmt: skip
    return _manifest(
        folder,
        f"from: cdc:uploads\n    access: read_write\n    columns:\n{fields}".rstrip(),
        "uploads",
        "enabled: true, refresh_mode: changes",
    )


def upload(connected: Any, rows: pa.Table) -> float:
    """Send rows until they are acknowledged; return the seconds it took."""
    began = time.perf_counter()
    writer, reader = connected.do_put(flight.FlightDescriptor.for_path("uploads"), rows.schema)
    with writer:
        writer.write_table(rows, max_chunksize=65_536)
        writer.done_writing()
        assert reader.read() is not None
    return time.perf_counter() - began


_TYPES = {pa.int64(): "bigint", pa.string(): "text", pa.float64(): "double", pa.int32(): "int",
          pa.bool_(): "boolean", pa.date32(): "date"}  # fmt: skip


def uploaded() -> pa.Table:
    """Return the rows that are uploaded: ten columns of usual types."""
    chance = Random(7)
    numbers = pa.array(range(_UPLOADED), pa.int64())
    return pa.table(
        {
            "id": numbers,
            "customer": [f"customer {number % 9973}" for number in range(_UPLOADED)],
            "amount": [chance.random() for _ in range(_UPLOADED)],
            "price": [number / 7 for number in range(_UPLOADED)],
            "lines": pa.array([number % 11 for number in range(_UPLOADED)], pa.int32()),
            "stock": pa.array([number % 101 for number in range(_UPLOADED)], pa.int32()),
            "is_paid": [number % 3 == 0 for number in range(_UPLOADED)],
            "day": pa.array([number % 2000 for number in range(_UPLOADED)], pa.int32()).cast(
                pa.date32()
            ),
            "note": ["shipped" if number % 5 else "open" for number in range(_UPLOADED)],
            "total": pa.array([number * 3 for number in range(_UPLOADED)], pa.int64()),
        }
    )


def _manifest(folder: Path, source: str, name: str, acceleration: str, more: str = "") -> Path:
    folder.mkdir()
    path = folder / "caraway.yaml"
    path.write_text(
        f"version: v1\nkind: Caraway\nname: flight\n{more}datasets:\n  - {source}\n"
        f"    name: {name}\n    acceleration: {{{acceleration}}}\n"
    )
    return path


@contextlib.contextmanager
def opened(address: str) -> Iterator[Any]:
    """Connect to a Flight endpoint."""
    with flight.connect(f"grpc+tcp://{address}", generic_options=_DIRECT) as connected:
        yield connected


@contextlib.contextmanager
def _rival(rows: Path) -> Iterator[Any]:
    command = [sys.executable, "-m", "bench.rivals.flight_server", str(rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            with opened(f"127.0.0.1:{port}") as connected:
                yield connected
        finally:
            process.terminate()


def _save(connected: Any, file: Path) -> None:
    """Write the batches that the server sends, so that the other one sends the same."""
    info = connected.get_flight_info(_command(_LINEITEM))
    reader = connected.do_get(info.endpoints[0].ticket)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, reader.schema) as writer:
        for chunk in reader:
            writer.write_batch(chunk.data)


def wait_until_loaded(connected: Any, table: str, rows: int) -> None:
    """Wait until a table has a number of rows."""
    deadline = time.monotonic() + _LOADED_S
    found: object = None
    while time.monotonic() < deadline:
        with contextlib.suppress(flight.FlightError, pa.ArrowException):
            info = connected.get_flight_info(_command(f"SELECT count(*) AS n FROM {table}"))
            found = connected.do_get(info.endpoints[0].ticket).read_all().column(0)[0].as_py()
            if found == rows:
                return
        threading.Event().wait(0.2)
    raise RuntimeError(f"{table} has {found} rows instead of {rows}")


def _command(sql: str) -> flight.FlightDescriptor:
    return flight.FlightDescriptor.for_command(sql)


def _count(connected: Any, endpoint: Any, options: Any = None) -> int:
    return sum(chunk.data.num_rows for chunk in connected.do_get(endpoint.ticket, options))


def _read_all(connected: Any, endpoint: Any) -> float:
    return _drained(connected.do_get(endpoint.ticket))


def _drained(reader: Any) -> float:
    """Read all rows; return the seconds it took."""
    began = time.perf_counter()
    rows = sum(chunk.data.num_rows for chunk in reader)
    assert rows == _LINEITEM_ROWS, rows
    return time.perf_counter() - began


def _in_turn(ours: Timed, theirs: Timed) -> Sequence[tuple[float, float]]:
    """Measure both in alternating order, after one round that does not count."""
    pairs = []
    for turn in range(_ROUNDS + 1):
        if turn % 2:
            one = ours()
            pairs.append((one, theirs()))
        else:
            other = theirs()
            pairs.append((ours(), other))
    return pairs[1:]


def _figure(name: str, pairs: Sequence[tuple[float, float]], goal: float) -> Figure:
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(other / one for one, other in pairs)
    return Figure(name, f"{ours:.2f} s", f"{theirs:.2f} s", ratio, f"≥ {goal:g}", ratio >= goal)
