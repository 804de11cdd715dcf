"""The 43 queries of ClickBench in one process over Parquet, against DuckDB on the same file."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import geometric_mean

import pyarrow as pa

from bench import answers, asking, costs, hits, servers
from bench.clickbench_queries import QUERIES
from bench.costs import Cost
from bench.report import Figure, Section
from bench.settings import Settings

_OURS, _THEIRS = "Caraway", "DuckDB"
_MEAN, _MOST = 1.0, 3.0


def measure(settings: Settings) -> Section:
    """Compare the answers of all queries, then run each on both engines in turn."""
    file = hits.file()
    medians: dict[str, Mapping[str, Cost]] = {}
    with ExitStack() as stack:
        url, process = stack.enter_context(servers.caraway(hits.manifest(file)))
        other = stack.enter_context(costs.EngineProcess(opened, file))
        runs = {_OURS: costs.over_http(url, process.pid, settings.limit_s), _THEIRS: other.ask}
        _compare(url, other, settings.limit_s)
        for number, query in enumerate(QUERIES, 1):
            both = medians[f"q{number:02}"] = costs.medians(runs, query.sql, settings.runs)
            words = (f"{name} {each.wall_s * 1000:.1f} ms, {each.work_s * 1000:.1f} of work"
                     for name, each in both.items())  # fmt: skip
            print(f"  q{number:02}: {'; '.join(words)}", flush=True)
    return Section("clickbench", _figures(medians), _table(medians))


def opened(file: Path) -> Callable[[str], pa.Table]:
    """Open DuckDB over the file, with two threads."""
    import duckdb  # Only in the child, to keep the parent small.

    connection = duckdb.connect(config={"threads": 2})
    connection.execute(f"CREATE VIEW hits AS FROM '{file}'")
    return lambda sql: connection.sql(sql).to_arrow_table()


def _compare(url: str, other: costs.EngineProcess, limit_s: float) -> None:
    """Raise an error where the engines answer differently."""
    for number, query in enumerate(QUERIES, 1):
        columns = other.answer(query.sql).num_columns
        sql = query.compared(columns)
        difference = answers.difference(asking.ask(url, sql, limit_s).rows, other.answer(sql))
        if difference is not None:
            raise RuntimeError(f"q{number:02} is answered differently: {difference}: {sql}")


def _figures(medians: Mapping[str, Mapping[str, Cost]]) -> list[Figure]:
    figures = []
    for place, words in enumerate(("", ", processor time")):
        ratios = {name: each[_OURS][place] / each[_THEIRS][place] for name, each in medians.items()}
        mean, worst = geometric_mean(ratios.values()), max(ratios, key=ratios.__getitem__)
        figures += [
            Figure(f"ClickBench, a sample of a million rows, 43 queries, geometric mean{words}; "
                   "DuckDB on the same Parquet", "", "", mean, f"≤ {_MEAN}", mean <= _MEAN),
            _worst(f"the worst query{words}: {worst}", medians[worst], place, ratios[worst]),
        ]  # fmt: skip
    return figures


def _worst(name: str, both: Mapping[str, Cost], place: int, ratio: float) -> Figure:
    ours, theirs = (f"{both[each][place] * 1000:.1f} ms" for each in (_OURS, _THEIRS))
    return Figure(name, ours, theirs, ratio, f"≤ {_MOST:g}", ratio <= _MOST)


def _table(medians: Mapping[str, Mapping[str, Cost]]) -> str:
    rows = ["| query | Caraway | DuckDB | ratio | Caraway, work | DuckDB, work | ratio |",
            "|---|---|---|---|---|---|---|"]  # fmt: skip
    for name, both in medians.items():
        cells = [name]
        for place in range(2):
            ours, theirs = both[_OURS][place], both[_THEIRS][place]
            cells += [f"{ours * 1000:.1f}", f"{theirs * 1000:.1f}", f"{ours / theirs:.2f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return "Milliseconds, medians; work is processor time.\n\n" + "\n".join(rows)
