"""Profiles the queries of TPC-H on executors that are held to a part of a core each."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import asking, clusters, data, neighbours, quotas
from bench.cluster_scaling import CORES, executor_pids
from bench.cluster_tpch import QUERIES
from bench.quotas import HeldProcesses
from bench.report import Section
from bench.settings import Settings

_EXECUTORS = (1, 4)
_LONG_MS = 100.0
_COLUMNS = ("reading", "building", "probing", "grouping", "partitioning", "other")


@dataclass(frozen=True, slots=True)
class _Profile:
    """The profile of a query, and the processor time of the executors."""

    seconds: float
    used_s: float
    tasks: Sequence[Mapping[str, Any]]
    """Empty if it ran whole."""
    skew: float

    def total_s(self, name: str) -> float:
        """Return a time of all tasks together."""
        return sum(float(each.get(f"{name}_ms", 0.0)) for each in self.tasks) / 1000

    def threads_s(self) -> Mapping[str, float]:
        """Return what the threads of the engine did, by the columns of the table."""
        found: Counter[str] = Counter()
        for each in self.tasks:
            for work, ms in each.get("threads_ms", {}).items():
                found[work if work in _COLUMNS else "other"] += ms / 1000
        return found


def measure(settings: Settings) -> Section:
    """Profile the second run of each query on one executor and on four."""
    try:
        found = {executors: _run(settings, executors) for executors in _EXECUTORS}
    except quotas.NoQuotasError as exc:
        return Section("cluster-profile", [], f"Not measured: {exc}.")
    one, four = (found[executors] for executors in _EXECUTORS)
    lines = [
        f"Scale {settings.scale}, each executor with {CORES:g} of a core; times in seconds. `work` "
        "is the processor time of four executors by that of one. The next columns are of four: "
        "what all tasks waited for, then what the threads of the engine did, which contains waits "
        "for a processor. Skew is that of the worst stage with a task of at least 0.1 s. A query "
        "without times ran whole.\n",
        "| query | on one | on four | work | slot | moving | planning | packing | "
        + " | ".join(_COLUMNS) + " | MB moved | skew |",
        "|---" * (8 + len(_COLUMNS) + 2) + "|",
    ]  # fmt: skip
    lines += [_row(query, one[query], four[query]) for query in one if query in four]
    return Section("cluster-profile", [], "\n".join(lines))


def _row(query: str, one: _Profile, four: _Profile) -> str:
    threads = four.threads_s()
    waits = (four.total_s(name) for name in ("waited", "moving", "planning", "packing"))
    moved_mb = sum(each.get("received_bytes", 0) for each in four.tasks) / 1e6
    cells = [
        query, f"{one.seconds:.2f}", f"{four.seconds:.2f}",
        f"{four.used_s / one.used_s:.2f}" if one.used_s else "",
        *(f"{each:.2f}" for each in waits),
        *(f"{threads.get(name, 0.0):.2f}" for name in _COLUMNS),
        f"{moved_mb:.1f}", f"{four.skew:.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _run(settings: Settings, executors: int) -> Mapping[str, _Profile]:
    found: dict[str, _Profile] = {}
    manifest = data.manifest(data.tpch(settings.scale))
    others = max(_EXECUTORS) - executors
    with (
        clusters.cluster(manifest, executors) as cluster,
        quotas.held(executor_pids(cluster), CORES) as groups,
        neighbours.computing(others, CORES, data.tpch(settings.scale)),
    ):
        # First runs read footers and plan on each executor, which the next ones do not; and beside
        # the first ones, executors start the processes that relieve them.
        for path in QUERIES:
            asking.ask(cluster.url, path.read_text(), settings.limit_s)
        for path in QUERIES:
            found[path.stem] = _profile(cluster.url, path.read_text(), groups, settings.limit_s)
            print(f"  {executors}: {path.stem}: {found[path.stem].seconds:7.3f} s", flush=True)
    return found


def _profile(url: str, sql: str, groups: Sequence[HeldProcesses], limit_s: float) -> _Profile:
    before = sum(each.used_s() for each in groups)
    answer = asking.ask(url, f"EXPLAIN ANALYZE VERBOSE {sql}", limit_s)
    used_s = sum(each.used_s() for each in groups) - before
    rows = dict(zip(*answer.rows.to_pydict().values(), strict=True))
    if "profile" not in rows:
        return _Profile(answer.seconds, used_s, (), 1.0)  # It ran whole.
    profile = json.loads(rows["profile"])
    stages = profile["stages"]
    tasks = [task for stage in stages for task in stage["tasks"]]
    long = [each["skew"] for each in stages if _longest_ms(each["tasks"]) >= _LONG_MS]
    return _Profile(profile["elapsed_ms"] / 1000, used_s, tasks, max(long, default=1.0))


def _longest_ms(tasks: Sequence[Mapping[str, float]]) -> float:
    return max(each.get("engine_ms", 0.0) + each.get("packing_ms", 0.0) for each in tasks)
