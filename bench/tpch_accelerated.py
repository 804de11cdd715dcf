"""The 22 queries of TPC-H in one process, accelerated and over Parquet, against DuckDB."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from bench import asking, costs, data, servers
from bench.costs import Cost, Run
from bench.report import Figure, Section
from bench.settings import Settings
from bench.tpch import QUERIES

_ENGINES = ("accelerated", "DuckDB tables", "DataFusion memory",
            "Parquet", "DuckDB Parquet", "DataFusion Parquet")  # fmt: skip
_PAIRS = {"accelerated": ("DuckDB tables", 1.0), "Parquet": ("DuckDB Parquet", 1.1)}
_MOST, _LESS_THAN_PARQUET = 2.0, 0.4
_QUIET_S, _QUIET = 2.0, 0.1


def measure(settings: Settings) -> Section:
    """Run each query on all engines in turn, and compare the sums of the medians."""
    folder = data.tpch(settings.scale)
    found: dict[str, dict[str, Cost]] = {name: {} for name in _ENGINES}
    with ExitStack() as stack:
        runs = _opened(stack, folder, settings.limit_s)
        for path in QUERIES:
            medians = costs.medians(runs, path.read_text(), settings.runs)
            for name, cost in medians.items():
                found[name][path.stem] = cost
            words = (f"{name} {each.work_s * 1000:.0f}" for name, each in medians.items())
            print(f"  {path.stem}: {', '.join(words)} ms of work", flush=True)
    return Section("tpch-accelerated", _figures(settings.scale, found), _table(found))


def _opened(stack: ExitStack, folder: Path, limit_s: float) -> dict[str, Run]:
    runs = dict[str, Run]()
    for name in _PAIRS:
        manifest = data.manifest(folder, is_accelerated=name == "accelerated")
        url, process = stack.enter_context(servers.caraway(manifest))
        runs[name] = costs.over_http(url, process.pid, limit_s)
        _wait_until_loaded(url, process.pid, limit_s)
    for name in _ENGINES:
        if name not in runs:
            runs[name] = stack.enter_context(costs.EngineProcess(_engine, name, folder)).ask
    return {name: runs[name] for name in _ENGINES}


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
    before = costs.work_s(pid)
    while time.monotonic() < deadline:
        time.sleep(_QUIET_S)
        now = costs.work_s(pid)
        if now - before < _QUIET_S * _QUIET:
            return
        before = now


def _figures(scale: str, found: Mapping[str, Mapping[str, Cost]]) -> list[Figure]:
    figures = []
    for name, (other, goal) in _PAIRS.items():
        ours, theirs = (_sum(found[each]) for each in (name, other))
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
        (cost.work_s / found["DuckDB tables"][query].work_s, query)
        for query, cost in found["accelerated"].items()
    )
    figures.append(Figure(
        f"the worst query, accelerated, processor time: {worst[1]}; DuckDB tables", "", "",
        worst[0], f"≤ {_MOST:g}", worst[0] <= _MOST))  # fmt: skip
    memory, files = (_sum(found[each]).work_s for each in _PAIRS)
    figures.append(Figure(
        "accelerated; over Parquet, processor time", f"{memory:.2f} s", f"{files:.2f} s",
        memory / files, f"≤ {_LESS_THAN_PARQUET}",
        memory <= files * _LESS_THAN_PARQUET))  # fmt: skip
    return figures


def _sum(found: Mapping[str, Cost]) -> Cost:
    return Cost(*(sum(each) for each in zip(*found.values(), strict=True)))


def _table(found: Mapping[str, Mapping[str, Cost]]) -> str:
    """Return a row for each query: processor time, and that of the others by it."""
    head = ["query", "accelerated", *_ENGINES[1:3], "Parquet", *_ENGINES[4:]]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for query in found["accelerated"]:
        cells = [query]
        for name, others in (("accelerated", _ENGINES[1:3]), ("Parquet", _ENGINES[4:])):
            ours = found[name][query].work_s
            cells.append(f"{ours * 1000:.0f}")
            cells += [_compared(ours, found[other][query].work_s) for other in others]
        rows.append(f"| {' | '.join(cells)} |")
    return (
        "Milliseconds of processor time, medians; in brackets Caraway's divided by that of the "
        "other.\n\n" + "\n".join(rows)
    )


def _compared(ours: float, theirs: float) -> str:
    return f"{theirs * 1000:.0f} ({ours / theirs:.2f})"


def _engine(name: str, folder: Path) -> Callable[[str], object]:
    return (_duckdb if name.startswith("DuckDB") else _datafusion)(name, folder)


def _duckdb(name: str, folder: Path) -> Callable[[str], object]:
    import duckdb  # Only in the child, to keep the parent small.

    connection = duckdb.connect(config={"threads": 2})
    kind = "VIEW" if name.endswith("Parquet") else "TABLE"
    for table in data.TABLES:
        connection.execute(f"CREATE {kind} {table} AS FROM '{folder / table}.parquet'")
    return lambda sql: connection.sql(sql).to_arrow_table()


def _datafusion(name: str, folder: Path) -> Callable[[str], object]:
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
