"""TPC-H on 1, 2 and 4 executors that are held to a part of a core each, at two scales."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench import asking, clusters, data, neighbours, quotas
from bench.cluster_tpch import QUERIES
from bench.quotas import HeldProcesses
from bench.report import Section
from bench.settings import Settings

_EXECUTORS = (1, 2, 4)
CORES = 0.4
"""Four such executors leave 0.4 of two cores to the scheduler, the head and the client."""


@dataclass(slots=True)
class _Run:
    """The best seconds of each query by name, None if it failed; those of its first run; and what
    the executors used in the best one."""

    scale: str
    executors: int
    seconds: dict[str, float | None] = field(default_factory=dict)
    first_s: dict[str, float] = field(default_factory=dict)
    used_s: dict[str, float] = field(default_factory=dict)


def measure(settings: Settings) -> Section:
    """Run all queries on clusters of different sizes; best of three rounds, of two at large scale.

    In the first round, executors read footers, and start the processes that relieve them.
    """
    try:
        runs = [
            _run(scale, executors, times, settings)
            for scale, times in ((settings.scale, 3), (settings.large_scale, 2))
            for executors in _EXECUTORS
        ]
    except quotas.NoQuotasError as exc:
        return Section("cluster-scaling", [], f"Not measured: {exc}.")
    return Section("cluster-scaling", [], _table(runs) + _single(runs) + _failures(runs))


def _run(scale: str, executors: int, times: int, settings: Settings) -> _Run:
    run = _Run(scale, executors)
    manifest = data.manifest(data.tpch(scale))
    others = max(_EXECUTORS) - executors
    with (
        clusters.cluster(manifest, executors) as cluster,
        quotas.held(executor_pids(cluster), CORES) as groups,
        neighbours.computing(others, CORES, data.tpch(settings.scale)),
    ):
        for path in QUERIES * times:
            name = path.stem
            if name in run.seconds and run.seconds[name] is None:
                continue
            try:
                measured = _asked(cluster.url, path.read_text(), groups, settings.limit_s)
            except asking.FailedError as exc:
                run.seconds[name] = None
                print(f"  {scale}, {executors}: {name}: {exc}", flush=True)
                continue
            run.first_s.setdefault(name, measured[0])
            best = run.seconds.get(name)
            if best is None or measured[0] < best:
                run.seconds[name], run.used_s[name] = measured
            print(f"  {scale}, {executors}: {name}: {measured[0]:7.3f} s", flush=True)
    return run


def executor_pids(cluster: clusters.Cluster) -> list[int]:
    """Return the processes that run the executors of a cluster."""
    status = cluster.folder.status()
    assert status is not None
    return [each.pid for each in status.processes if each.name.startswith("executor") and each.pid]


def _asked(
    url: str, sql: str, groups: Sequence[HeldProcesses], limit_s: float
) -> tuple[float, float]:
    """Return the seconds of a query, and the processor time of the executors meanwhile."""
    before = sum(each.used_s() for each in groups)
    seconds = asking.ask(url, sql, limit_s).seconds
    return seconds, sum(each.used_s() for each in groups) - before


def _table(runs: Sequence[_Run]) -> str:
    """Sum up the queries that all clusters of a scale completed."""
    lines = [
        f"Each executor has {CORES:g} of a core, with all processes that belong to it.\n",
        "| scale | executors | queries | total | speed-up | of the ideal | work of executors | "
        "used of their quotas | first runs |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        common = _common(run, runs)
        total, first = (_sum(each.seconds, common) for each in (run, _peers(run, runs)[0]))
        used, first_used = (_sum(each.used_s, common) for each in (run, _peers(run, runs)[0]))
        if not total or not first_used:
            continue
        share = used / (total * run.executors * CORES)
        lines.append(
            f"| {run.scale} | {run.executors} | {len(common)} | {total:.1f} s | "
            f"{first / total:.2f} | {first / total / run.executors:.2f} | "
            f"{used / first_used:.2f} | {share:.2f} | "
            f"{_sum(run.first_s, common):.1f} s |"
        )
    return "\n".join(lines)


def _single(runs: Sequence[_Run]) -> str:
    """Name the queries that gain least and most."""
    notes = []
    for run in runs:
        if run.executors != max(_EXECUTORS):
            continue
        first = _peers(run, runs)[0].seconds
        gains = sorted(
            ((first[query] or 0.0) / (run.seconds[query] or 1.0), query)
            for query in _common(run, runs)
        )
        if gains:
            told = [", ".join(f"{q} {gain:.2f}" for gain, q in part) for part in
                    (gains[:4], reversed(gains[-4:]))]  # fmt: skip
            notes.append(
                f"At scale {run.scale} on {run.executors} executors, {told[0]} gain least, and "
                f"{told[1]} most."
            )
    return "\n\n" + " ".join(notes)


def _peers(run: _Run, runs: Sequence[_Run]) -> list[_Run]:
    return [each for each in runs if each.scale == run.scale]


def _common(run: _Run, runs: Sequence[_Run]) -> list[str]:
    peers = _peers(run, runs)
    return [
        query for query in run.seconds if all(each.seconds[query] is not None for each in peers)
    ]


def _sum(values: "dict[str, float | None] | dict[str, float]", names: Sequence[str]) -> float:
    return sum(values[name] or 0.0 for name in names)


def _failures(runs: Sequence[_Run]) -> str:
    failed = [
        f"scale {run.scale} on {run.executors}: {', '.join(missing)}"
        for run in runs
        if (missing := [query for query, took in run.seconds.items() if took is None])
    ]
    return (
        "\n\nFailed or timed out, and excluded from all totals of the scale: "
        + ("; ".join(failed) + ".")
        if failed
        else ""
    )
