"""`python -m bench [--write] [NAME ...]`: run suites, print results, exit 1 on a missed goal."""

import argparse
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields

from bench import (
    acceleration,
    acceleration_scaling,
    catalog,
    clickbench,
    cluster_profile,
    cluster_scaling,
    cluster_shuffle,
    cluster_small,
    cluster_tpch,
    console,
    embeddings,
    encoding,
    flight,
    freshness,
    iceberg,
    ingest,
    jobs,
    local_models,
    lookups,
    management,
    mcp_calls,
    memory,
    models,
    operator_idle,
    remote,
    report,
    search,
    search_million,
    search_refresh,
    search_relevance,
    startup,
    throughput,
    tpch,
    tpch_accelerated,
    wide,
)
from bench.settings import Settings

_SUITES: Mapping[str, Callable[[], list[report.Figure]]] = {
    "startup": startup.measure,
    "encoding": encoding.measure,
    "embeddings": embeddings.measure,
    "throughput": throughput.measure,
    "mcp": mcp_calls.measure,
    "memory": memory.measure,
    "remote": remote.measure,
    "iceberg": iceberg.measure,
    "operator": operator_idle.measure,
    "tpch": tpch.measure,
}
_CLUSTER: Mapping[str, Callable[[Settings], report.Section]] = {
    "cluster-tpch": cluster_tpch.measure,
    "cluster-small": cluster_small.measure,
    "cluster-shuffle": cluster_shuffle.measure,
    "cluster-scaling": cluster_scaling.measure,
    "cluster-profile": cluster_profile.measure,
    "tpch-accelerated": tpch_accelerated.measure,
    "clickbench": clickbench.measure,
    "jobs": jobs.measure,
    "acceleration": acceleration.measure,
    "lookups": lookups.measure,
    "freshness": freshness.measure,
    "acceleration-scaling": acceleration_scaling.measure,
    "ingest": ingest.measure,
    "flight": flight.measure,
    "models": models.measure,
    "local-models": local_models.measure,
    "search": search.measure,
    "search-million": search_million.measure,
    "search-refresh": search_refresh.measure,
    "search-relevance": search_relevance.measure,
    "wide": wide.measure,
    "console": console.measure,
    "management": management.measure,
    "catalog": catalog.measure,
}
_GROUPS = {"cluster": list(_CLUSTER), "one": list(_SUITES)}


def main(arguments: list[str]) -> int:
    """Run the named suites, or all of them."""
    # Exit through `finally` blocks on SIGTERM, so that `timeout` leaves no processes behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = _parser().parse_args(arguments)
    wanted = options.names or list(_GROUPS)
    names = [name for each in wanted for name in _GROUPS.get(each, [each])]
    settings = Settings(**{each.name: getattr(options, each.name) for each in fields(Settings)})
    figures: list[report.Figure] = []
    sections: list[report.Section] = []
    for name in names:
        print(f"{name} ...", flush=True)
        if name in _SUITES:
            figures += _SUITES[name]()
        else:
            sections.append(_CLUSTER[name](settings))
    _print(figures, sections)
    if options.write:
        if {*names}.isdisjoint(_SUITES) or {*names} >= {*_SUITES}:
            _write(figures, sections)
        else:
            print(f"\nnot written: the table needs all of these suites: {', '.join(_SUITES)}")
    found = [*figures, *(figure for section in sections for figure in section.figures)]
    return 0 if all(figure.is_met for figure in found) else 1


def _print(figures: list[report.Figure], sections: list[report.Section]) -> None:
    print(f"\n{report.machine()}")
    if figures:
        print(f"\n{report.table(figures)}")
    for section in sections:
        print(f"\n## {section.name}\n\n{report.render_section(section)}")


def _write(figures: list[report.Figure], sections: list[report.Section]) -> None:
    if figures:
        report.write_figures(figures)
    for section in sections:
        report.write_section(section)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    default = Settings()
    known = [*_GROUPS, *_SUITES, *_CLUSTER]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(known)}")
    parser.add_argument("--write", action="store_true", help="update docs/performance.md")
    parser.add_argument("--scale", default=default.scale)
    parser.add_argument("--large-scale", default=default.large_scale)
    parser.add_argument("--scan-scale", default=default.scan_scale)
    parser.add_argument("--runs", type=int, default=default.runs)
    parser.add_argument("--limit-s", type=float, default=default.limit_s)
    parser.add_argument(
        "--rivals", type=lambda text: tuple(text.split(",")), default=default.rivals
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
