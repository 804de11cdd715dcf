"""The 22 queries of TPC-H on two executors of one core, against three others in turn."""

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import answers, asking, children, clusters, data
from bench.report import Figure, Section
from bench.settings import Settings

QUERIES = sorted((Path(__file__).parent / "queries").glob("q*.sql"))
_Start = Callable[[Path], contextlib.AbstractContextManager[children.Rival]]


@dataclass(frozen=True, slots=True)
class _Rival:
    name: str
    start: _Start
    goal: float


_RIVALS: Mapping[str, _Rival] = {
    "plain": _Rival("plain DataFusion, 2 threads", children.plain, 1.5),
    "daft": _Rival(
        "Daft on Ray, 2 CPUs",
        lambda folder: children.other("daft_on_ray", data.plain_strings(folder)),
        0.35,
    ),
    "spark": _Rival("Spark local[2]", lambda folder: children.other("spark", folder), 0.2),
}


@dataclass(frozen=True, slots=True)
class _Pair:
    """Best seconds of one query here and there, or why there are none."""

    ours: float = math.nan
    theirs: float = math.nan
    trouble: str = ""
    is_ours: bool = False
    """Whose trouble it is."""


def measure(settings: Settings) -> Section:
    """Run each query in turn here and there, rival by rival, never two rivals at once."""
    folder = data.tpch(settings.scale)
    rounds: dict[str, dict[str, _Pair]] = {}
    with clusters.cluster(data.manifest(folder), executors=2) as cluster:
        for key in settings.rivals:
            print(f"  against {_RIVALS[key].name}", flush=True)
            with children.plain(folder) as reference, _RIVALS[key].start(folder) as rival:
                rounds[key] = {
                    path.stem: _told(
                        path.stem, _race(cluster, rival, reference, path.read_text(), settings)
                    )
                    for path in QUERIES
                }
    figures = [_figure(_RIVALS[key], pairs, settings) for key, pairs in rounds.items()]
    return Section("cluster-tpch", figures, _table(rounds) + _troubles(rounds))


def _race(
    cluster: clusters.Cluster,
    rival: children.Rival,
    reference: children.Rival,
    sql: str,
    settings: Settings,
) -> _Pair:
    """Warm both up and compare the answers; then time both, who goes first changing."""
    expected = reference.answer(sql, settings.limit_s)
    try:
        rows = asking.ask(cluster.url, sql, settings.limit_s).rows
    except asking.FailedError as exc:
        return _Pair(trouble=f"fails here: {exc}", is_ours=True)
    if (why := answers.difference(expected, rows)) is not None:
        return _Pair(trouble=f"another answer here: {why}", is_ours=True)
    try:
        if (why := answers.difference(expected, rival.answer(sql, settings.limit_s))) is not None:
            return _Pair(trouble=f"another answer: {why}")
        return _timed(cluster, rival, sql, settings)
    except children.RivalError as exc:
        return _Pair(trouble=" ".join(str(exc).split())[:200])
    except asking.FailedError as exc:
        return _Pair(trouble=f"fails here: {exc}", is_ours=True)


def _timed(cluster: clusters.Cluster, rival: children.Rival, sql: str, settings: Settings) -> _Pair:
    ours, theirs = [], []
    for turn in range(settings.runs):
        if turn % 2:
            theirs.append(rival.time(sql, settings.limit_s))
        ours.append(asking.ask(cluster.url, sql, settings.limit_s).seconds)
        if not turn % 2:
            theirs.append(rival.time(sql, settings.limit_s))
    return _Pair(min(ours), min(theirs))


def _told(query: str, pair: _Pair) -> _Pair:
    outcome = f"{pair.ours * 1000:8.1f} ms, {pair.theirs * 1000:8.1f} ms" + (
        f", ratio {pair.ours / pair.theirs:.2f}"
    )
    print(f"    {query}: {pair.trouble or outcome}", flush=True)
    return pair


def _figure(rival: _Rival, pairs: Mapping[str, _Pair], settings: Settings) -> Figure:
    both = [pair for pair in pairs.values() if not pair.trouble]
    ours, theirs = sum(pair.ours for pair in both), sum(pair.theirs for pair in both)
    ratio = ours / theirs if theirs else math.nan
    is_whole = not any(pair.is_ours for pair in pairs.values())
    return Figure(
        f"TPC-H scale {settings.scale} on 2 executors of one core, {len(both)} queries; "
        f"{rival.name}",
        f"{ours:.2f} s", f"{theirs:.2f} s", ratio, f"≤ {rival.goal}",
        is_whole and ratio <= rival.goal,
    )  # fmt: skip


def _table(rounds: Mapping[str, Mapping[str, _Pair]]) -> str:
    """A line a query: ours beside the first rival, and each rival with the ratio to it."""
    names = [_RIVALS[key].name for key in rounds]
    lines = [
        "Milliseconds, best of the runs; in brackets how much of the other's time Caraway took "
        "beside it.\n",
        f"| query | Caraway | {' | '.join(names)} |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for query in next(iter(rounds.values())):
        pairs = [pairs[query] for pairs in rounds.values()]
        lines.append(f"| {query} | {_ms(pairs[0].ours)} | {' | '.join(map(_cell, pairs))} |")
    return "\n".join(lines)


def _cell(pair: _Pair) -> str:
    return "-" if pair.trouble else f"{_ms(pair.theirs)} ({pair.ours / pair.theirs:.2f})"


def _ms(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{seconds * 1000:.0f}"


def _troubles(rounds: Mapping[str, Mapping[str, _Pair]]) -> str:
    found = [
        f"- {query}, {_RIVALS[key].name}: {pair.trouble}"
        for key, pairs in rounds.items()
        for query, pair in pairs.items()
        if pair.trouble
    ]
    return "\n\nNot compared:\n\n" + "\n".join(found) if found else ""
