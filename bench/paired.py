"""`python -m bench.paired BASE [--write] [SUITE ...]`: compare this checkout with another one.

BASE is a checkout with its own `.venv`, as created by `make setup`. Both products run at the same
time and are measured alternately, so that changes in the speed of the machine affect both.
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec

import pyarrow as pa

from bench import (
    acceleration,
    asking,
    cluster_small,
    clusters,
    costs,
    data,
    flight,
    ingest,
    jobs,
    lookups,
    memory,
    report,
    servers,
    startup,
    throughput,
    tpch,
)

_WORSE = 1.03
_TURNS = 6
_STREAMED = {"JSON": "application/json", "Arrow": "application/vnd.apache.arrow.stream"}


@dataclass(frozen=True, slots=True)
class _Product:
    """The commands of one checkout."""

    programs: Path


@dataclass(frozen=True, slots=True)
class _Compared:
    """One figure of both checkouts. `ratio` is the cost here divided by the cost of the base."""

    name: str
    here: str
    there: str
    ratio: float

    def figure(self) -> report.Figure:
        """Return the row of the table."""
        is_met = self.ratio <= _WORSE
        return report.Figure(self.name, self.here, self.there, self.ratio, f"≤ {_WORSE}", is_met)


_Pair = tuple[_Product, _Product]
_P = ParamSpec("_P")


def _startup(products: _Pair) -> Iterator[_Compared]:
    starts = [partial(_started, product) for product in products]
    yield _seconds("start of the example until ready", _in_turn(starts))


def _standalone(products: _Pair) -> Iterator[_Compared]:
    """Compare TPC-H, streaming and memory of two standalone processes over the same files."""
    manifest = data.manifest(data.tpch())
    with _standing(products, manifest) as running:
        yield _queries("TPC-H scale 1, standalone, 22 queries", [url for url, _ in running])
        for name, form in _STREAMED.items():
            rows = 1_000_000 if name == "JSON" else 10_000_000
            drains = [partial(_timed, memory.drain, url, form, rows) for url, _ in running]
            times = _in_turn(drains)
            yield _seconds(f"{rows:,} rows as {name}, standalone", times)
    with _standing(products, manifest) as running:
        peaks = []
        for url, process in running:
            memory.drain(url, "application/json", 1_000)
            servers.reset_peak(process)
            idle = servers.resident_mb(process)
            memory.drain(url, "application/json", 5_000_000)
            peaks.append((servers.peak_mb(process) - idle, idle))
        (here, idle_here), (there, idle_there) = peaks
        yield _Compared("memory while five million rows are sent as JSON, with the idle size",
                        f"{here + idle_here:.0f} MB", f"{there + idle_there:.0f} MB",
                        (here + idle_here) / (there + idle_there))  # fmt: skip


def _tiny(products: _Pair) -> Iterator[_Compared]:
    """Compare `SELECT 1` from the results cache and computed."""
    with TemporaryDirectory() as folder:
        manifest = throughput.manifest(Path(folder) / "t.csv")
        with _standing(products, manifest) as running:
            for name, header in (("cached", ""), ("computed", "Cache-Control: no-cache\r\n")):
                rates = _in_turn(
                    [partial(throughput.rate, url, "/v1/sql", header) for url, _ in running]
                )
                yield _rates(f"SELECT 1, 8 connections, {name}", rates)


def _lookups(products: _Pair) -> Iterator[_Compared]:
    with TemporaryDirectory() as folder:
        manifest = lookups.manifest(Path(folder) / "items.parquet")
        with _standing(products, manifest) as running:
            for url, _ in running:
                lookups.wait_until_loaded(url)
            rates = _in_turn([partial(lookups.rate, url, "/v1/sql") for url, _ in running])
            yield _rates("point lookups by primary key, 8 connections, standalone", rates)


def _cluster(products: _Pair) -> Iterator[_Compared]:
    """Compare TPC-H, small queries and jobs on clusters of two single-core executors."""
    manifest = data.manifest(data.tpch())
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(_valkey_cluster(manifest, each)).url for each in products]
        yield _queries("TPC-H scale 1 on two executors, 22 queries", urls)
        kept = [asking.Connection(url) for url in urls]
        small = [tuple(each.time(cluster_small.SQL) for each in kept) for _ in range(440)][40:]
        yield _seconds("one small table on two executors", small)
        apis = [jobs.Api(url) for url in urls]
        waited = [tuple(_timed(_job, each) for each in apis) for _ in range(110)][10:]
        yield _seconds("a small job from submission to its end", waited)


def _changing(products: _Pair) -> Iterator[_Compared]:
    """Compare change batches into a dataset of a million rows, with the state in Valkey."""
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text(ingest.MANIFEST)
        senders = []
        for product in products:
            running = stack.enter_context(_valkey_cluster(manifest, product))
            senders.append(ingest.Sender(running.url))
            senders[-1].load_rows()
        rates = _in_turn([partial(_changes, each) for each in senders])
        yield _rates("changes per second in batches of 1,000, two executors", rates)
        lags = _in_turn([each.measure_lag for each in senders])
        yield _seconds("lookup of a row just changed, two executors", lags)


def _accelerated(products: _Pair) -> Iterator[_Compared]:
    """Compare scans and full refreshes of lineitem, accelerated on two executors."""
    file = data.tpch() / "lineitem.parquet"
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(acceleration.accelerated_cluster(file, each.programs))
            for each in products
        ]
        connections = [asking.Connection(cluster.url) for cluster, _ in running]
        scans = _in_turn([partial(_all_scans, each) for each in connections])
        yield _seconds("four scans of accelerated lineitem, two executors", scans)
        refreshed = _in_turn([dataset.refresh for _, dataset in running])
        yield _seconds("full refresh of lineitem, two executors", refreshed)


def _uploads(products: _Pair) -> Iterator[_Compared]:
    """Compare DoPut of a million rows into an accelerated dataset, in time and processor time."""
    rows = flight.uploaded()
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        manifest = flight.upload_manifest(Path(folder) / "uploads", rows.schema)
        sides = []
        for product in products:
            addresses, process = stack.enter_context(servers.listening(manifest, product.programs))
            connected = stack.enter_context(flight.opened(addresses["flight"]))
            flight.wait_until_loaded(connected, "uploads", 0)
            sides.append(partial(_uploaded, connected, rows, process.pid))
        works: list[list[float]] = [[], []]

        def timed(side: int) -> float:
            wall_s, work_s = sides[side]()
            works[side].append(work_s)
            return wall_s

        yield _seconds("DoPut of a million rows", _in_turn([partial(timed, 0), partial(timed, 1)]))
        pairs = list(zip(*works, strict=True))[1:]
        yield _seconds("DoPut of a million rows, processor time of the runtime", pairs)


def _uploaded(connected: Any, rows: pa.Table, pid: int) -> tuple[float, float]:
    before = costs.work_s(pid)
    return flight.upload(connected, rows), costs.work_s(pid) - before


_SUITES: Mapping[str, Callable[[_Pair], Iterator[_Compared]]] = {
    "startup": _startup,
    "standalone": _standalone,
    "tiny": _tiny,
    "lookups": _lookups,
    "cluster": _cluster,
    "accelerated": _accelerated,
    "changing": _changing,
    "uploads": _uploads,
}


def main(arguments: list[str]) -> int:
    """Measure the named suites, or all; return 1 if a figure is worse than allowed."""
    parser = argparse.ArgumentParser(prog="python -m bench.paired")
    parser.add_argument("base", type=Path, help="checkout with a .venv to compare with")
    parser.add_argument("suites", nargs="*", default=list(_SUITES), metavar="SUITE")
    parser.add_argument("--write", action="store_true", help="update docs/performance.md")
    options = parser.parse_args(arguments)
    products = (_Product(servers.BIN), _Product(options.base.resolve() / ".venv" / "bin"))
    figures = []
    for name in options.suites:
        print(f"{name} ...", flush=True)
        for compared in _SUITES[name](products):
            figures.append(compared.figure())
            print(f"  {compared.name}: {compared.here}, base {compared.there}, "
                  f"ratio {compared.ratio:.3f}", flush=True)  # fmt: skip
    table = report.table(figures).replace("| alternative |", "| base |")
    print(f"\n{table}")
    if options.write:
        report.write_section(report.Section("paired", [], table))
    return 0 if all(each.is_met for each in figures) else 1


@contextlib.contextmanager
def _standing(
    products: _Pair, manifest: Path
) -> Iterator[list[tuple[str, "subprocess.Popen[bytes]"]]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(servers.caraway(manifest, each.programs)) for each in products]


@contextlib.contextmanager
def _valkey_cluster(manifest: Path, product: _Product) -> Iterator[clusters.Cluster]:
    with (
        jobs.valkey() as state,
        clusters.cluster(manifest, executors=2, state=state, programs=product.programs) as running,
    ):
        yield running


def _in_turn(sides: Sequence[Callable[[], float]]) -> Sequence[Sequence[float]]:
    """Measure both sides several times in alternating order, after one warm-up turn."""
    turns = []
    for turn in range(_TURNS + 1):
        order = (0, 1) if turn % 2 else (1, 0)
        found = {side: sides[side]() for side in order}
        turns.append((found[0], found[1]))
    return turns[1:]


def _queries(name: str, urls: Sequence[str]) -> _Compared:
    """Run the TPC-H queries alternately on both sides; compare the sums of the best times."""
    sums = [0.0, 0.0]
    for path in tpch.QUERIES:
        sql = path.read_text()
        times = _in_turn([partial(_asked, url, sql) for url in urls])
        best = [min(side) for side in zip(*times, strict=True)]
        print(f"    {path.stem}: {best[0] * 1000:.1f} ms, base {best[1] * 1000:.1f} ms, "
              f"{best[0] / best[1]:.2f}", flush=True)  # fmt: skip
        sums = [total + each for total, each in zip(sums, best, strict=True)]
    return _Compared(name, f"{sums[0]:.2f} s", f"{sums[1]:.2f} s", sums[0] / sums[1])


def _seconds(name: str, pairs: Sequence[Sequence[float]]) -> _Compared:
    here, there = (statistics.median(side) * 1000 for side in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    return _Compared(name, f"{here:,.1f} ms", f"{there:,.1f} ms", ratio)


def _rates(name: str, pairs: Sequence[Sequence[float]]) -> _Compared:
    here, there = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(other / one for one, other in pairs)
    return _Compared(name, f"{here:,.0f} /s", f"{there:,.0f} /s", ratio)


def _timed(work: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> float:
    began = time.perf_counter()
    work(*args, **kwargs)
    return time.perf_counter() - began


def _started(product: _Product) -> float:
    began = time.perf_counter()
    with servers.caraway(startup.EXAMPLE, product.programs):
        return time.perf_counter() - began


def _asked(url: str, sql: str) -> float:
    return asking.ask(url, sql).seconds


def _all_scans(connection: asking.Connection) -> float:
    return sum(connection.time(sql) for sql in acceleration.SCANS.values())


def _changes(sender: ingest.Sender) -> float:
    return sender.send_updates(6.0)[0]


def _job(api: jobs.Api) -> None:
    api.wait(api.submit(jobs.SMALL))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
