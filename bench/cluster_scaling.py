"""TPC-H on 1, 2 and 4 single-core executors, at two scales."""

import os
from dataclasses import dataclass

from bench import asking, clusters, data
from bench.cluster_tpch import QUERIES
from bench.report import Section
from bench.settings import Settings

_EXECUTORS = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class _Run:
    """The seconds of each query by name; None if it failed or timed out."""

    scale: str
    executors: int
    seconds: dict[str, float | None]


def measure(settings: Settings) -> Section:
    """Run each query on clusters of different sizes; best of several runs, one at large scale."""
    runs = [
        _run(scale, executors, times, settings)
        for scale, times in ((settings.scale, settings.runs), (settings.large_scale, 1))
        for executors in _EXECUTORS
    ]
    return Section("cluster-scaling", [], _table(runs) + _failures(runs))


def _run(scale: str, executors: int, times: int, settings: Settings) -> _Run:
    seconds: dict[str, float | None] = {}
    with clusters.cluster(data.manifest(data.tpch(scale)), executors) as cluster:
        for path in QUERIES:
            try:
                took = [
                    asking.ask(cluster.url, path.read_text(), settings.limit_s).seconds
                    for _ in range(times)
                ]
                seconds[path.stem] = min(took)
                print(f"  {scale}, {executors}: {path.stem}: {min(took):7.3f} s", flush=True)
            except asking.FailedError as exc:
                seconds[path.stem] = None
                print(f"  {scale}, {executors}: {path.stem}: {exc}", flush=True)
    return _Run(scale, executors, seconds)


def _table(runs: list[_Run]) -> str:
    """Sum up the queries that all clusters of a scale completed."""
    lines = [
        f"The machine has {os.cpu_count()} cores: with more executors than that, the figures show "
        "the cost of distribution, not its benefit.\n",
        "| scale | executors | queries | total | relative to one executor |",
        "|---|---|---|---|---|",
    ]
    for run in runs:
        peers = [each for each in runs if each.scale == run.scale]
        common = [
            query for query in run.seconds if all(each.seconds[query] is not None for each in peers)
        ]
        total, first = (
            sum(each.seconds[query] or 0.0 for query in common) for each in (run, peers[0])
        )
        share = f"{total / first:.2f}" if first else "-"
        lines.append(f"| {run.scale} | {run.executors} | {len(common)} | {total:.2f} s | {share} |")
    return "\n".join(lines)


def _failures(runs: list[_Run]) -> str:
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
