"""The 22 queries of TPC-H in one process, accelerated and over Parquet, against DuckDB."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from bench import asking, data, quotas, servers
from bench.report import Figure, Section
from bench.settings import Settings
from bench.tpch import QUERIES

_ENGINES = ("accelerated", "DuckDB tables", "DataFusion memory",
            "Parquet", "DuckDB Parquet", "DataFusion Parquet")  # fmt: skip
_PAIRS = {"accelerated": ("DuckDB tables", 1.0), "Parquet": ("DuckDB Parquet", 1.1)}
_MOST, _LESS_THAN_PARQUET = 2.0, 0.4
_QUIET_S, _QUIET = 2.0, 0.1


class Cost(NamedTuple):
    """The wall time and the processor time of one run of a query."""

    wall_s: float
    work_s: float
    """Processor time."""


_Run = Callable[[str], Cost]


def measure(settings: Settings) -> Section:
    """Run each query on all engines in turn, and compare the sums of the medians."""
    folder = data.tpch(settings.scale)
    costs: dict[str, dict[str, Cost]] = {name: {} for name in _ENGINES}
    with ExitStack() as stack:
        runs = _opened(stack, folder, settings.limit_s)
        for path in QUERIES:
            found = _medians(runs, path.read_text(), settings.runs)
            for name, cost in found.items():
                costs[name][path.stem] = cost
            words = (f"{name} {each.work_s * 1000:.0f}" for name, each in found.items())
            print(f"  {path.stem}: {', '.join(words)} ms of work", flush=True)
    return Section("tpch-accelerated", _figures(settings.scale, costs), _table(costs))


def _opened(stack: ExitStack, folder: Path, limit_s: float) -> dict[str, _Run]:
    runs = dict[str, _Run]()
    for name in _PAIRS:
        manifest = data.manifest(folder, is_accelerated=name == "accelerated")
        url, process = stack.enter_context(servers.caraway(manifest))
        runs[name] = _over_http(url, process.pid, limit_s)
        _wait_until_loaded(url, process.pid, limit_s)
    for name in _ENGINES:
        if name not in runs:
            runs[name] = stack.enter_context(_Other(name, folder)).ask
    return {name: runs[name] for name in _ENGINES}


def _over_http(url: str, pid: int, limit_s: float) -> _Run:
    def run(sql: str) -> Cost:
        before = _work_s(pid)
        answer = asking.ask(url, sql, limit_s)
        return Cost(answer.seconds, _work_s(pid) - before)

    return run


def _wait_until_loaded(url: str, pid: int, limit_s: float) -> None:
    """Wait until all tables can be read, and nothing is done for them any more."""
    deadline = time.monotonic() + limit_s
    for table in data.TABLES:
        while True:
            try:
                asking.ask(url, f"SELECT count(*) FROM {table}", limit_s)
                break
            except asking.FailedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
    before = _work_s(pid)
    while time.monotonic() < deadline:
        time.sleep(_QUIET_S)
        now = _work_s(pid)
        if now - before < _QUIET_S * _QUIET:
            return
        before = now


def _work_s(root: int) -> float:
    """Return the processor time of a process and of those that it started."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in quotas.descendants(root))


def _medians(runs: Mapping[str, _Run], sql: str, count: int) -> dict[str, Cost]:
    """Run a statement on all engines, in an order that changes; the first runs do not count."""
    found: dict[str, list[Cost]] = {name: [] for name in runs}
    for turn in range(count + 2):
        for name in list(runs)[:: -1 if turn % 2 else 1]:
            found[name].append(runs[name](sql))
    return {
        name: Cost(*(statistics.median(each) for each in zip(*costs[2:], strict=True)))
        for name, costs in found.items()
    }


def _figures(scale: str, costs: Mapping[str, Mapping[str, Cost]]) -> list[Figure]:
    figures = []
    for name, (other, goal) in _PAIRS.items():
        ours, theirs = (_sum(costs[each]) for each in (name, other))
        ratio = ours.wall_s / theirs.wall_s
        work = ours.work_s / theirs.work_s
        title = f"TPC-H scale {scale}, 22 queries in one process, {name}; {other}"
        figures += [
            Figure(title, f"{ours.wall_s:.2f} s", f"{theirs.wall_s:.2f} s", ratio,
                   f"≤ {goal}", ratio <= goal),
            Figure(f"{title}, processor time", f"{ours.work_s:.2f} s", f"{theirs.work_s:.2f} s",
                   work, f"≤ {goal}", work <= goal),
        ]  # fmt: skip
    worst = max(
        (cost.work_s / costs["DuckDB tables"][query].work_s, query)
        for query, cost in costs["accelerated"].items()
    )
    figures.append(Figure(
        f"the worst query, accelerated, processor time: {worst[1]}; DuckDB tables", "", "",
        worst[0], f"≤ {_MOST:g}", worst[0] <= _MOST))  # fmt: skip
    memory, files = (_sum(costs[each]).work_s for each in _PAIRS)
    figures.append(Figure(
        "accelerated; over Parquet, processor time", f"{memory:.2f} s", f"{files:.2f} s",
        memory / files, f"≤ {_LESS_THAN_PARQUET}",
        memory <= files * _LESS_THAN_PARQUET))  # fmt: skip
    return figures


def _sum(costs: Mapping[str, Cost]) -> Cost:
    return Cost(*(sum(each) for each in zip(*costs.values(), strict=True)))


def _table(costs: Mapping[str, Mapping[str, Cost]]) -> str:
    """Return a row for each query: processor time, and that of the others by it."""
    head = ["query", "accelerated", *_ENGINES[1:3], "Parquet", *_ENGINES[4:]]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for query in costs["accelerated"]:
        cells = [query]
        for name, others in (("accelerated", _ENGINES[1:3]), ("Parquet", _ENGINES[4:])):
            ours = costs[name][query].work_s
            cells.append(f"{ours * 1000:.0f}")
            cells += [_compared(ours, costs[other][query].work_s) for other in others]
        rows.append(f"| {' | '.join(cells)} |")
    return (
        "Milliseconds of processor time, medians; in brackets Caraway's divided by that of the "
        "other.\n\n" + "\n".join(rows)
    )


def _compared(ours: float, theirs: float) -> str:
    return f"{theirs * 1000:.0f} ({ours / theirs:.2f})"


class _Other:
    """DuckDB or plain DataFusion in a process of its own, with two threads."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name = name
        self._folder = folder

    def __enter__(self) -> "_Other":
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there, self._name, self._folder))
        self._process.start()
        self._pipe.recv()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._pipe.send(None)
        self._process.join(10)

    def ask(self, sql: str) -> Cost:
        """Run a statement and return what it took."""
        self._pipe.send(sql)
        cost: Cost = self._pipe.recv()
        return cost


def _serve(pipe: Connection, name: str, folder: Path) -> None:
    run = _duckdb(name, folder) if name.startswith("DuckDB") else _datafusion(name, folder)
    pipe.send(True)
    while (sql := pipe.recv()) is not None:
        began = time.perf_counter(), time.process_time()
        run(sql)
        pipe.send(Cost(time.perf_counter() - began[0], time.process_time() - began[1]))


def _duckdb(name: str, folder: Path) -> Callable[[str], object]:
    import duckdb  # Only in the child, to keep the parent small.

    connection = duckdb.connect(config={"threads": 2})
    kind = "VIEW" if name.endswith("Parquet") else "TABLE"
    for table in data.TABLES:
        connection.execute(f"CREATE {kind} {table} AS FROM '{folder / table}.parquet'")
    return lambda sql: connection.sql(sql).to_arrow_table()


def _datafusion(name: str, folder: Path) -> Callable[[str], Sequence[object]]:
    import pyarrow.parquet as pq
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(2))
    for table in data.TABLES:
        file = folder / f"{table}.parquet"
        if name.endswith("Parquet"):
            context.register_parquet(table, str(file))
            continue
        batches = pq.read_table(file).combine_chunks().to_batches(max_chunksize=65536)
        half = (len(batches) + 1) // 2
        parts = [each for each in (batches[:half], batches[half:]) if each]
        context.register_record_batches(table, parts)
    return lambda sql: context.sql(sql).collect()
