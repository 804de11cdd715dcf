"""The 22 queries of TPC-H on two single-core executors, against three other engines."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
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
    query_goal: float | None = None
    """The longest time of each query, as a multiple of the rival's."""


_RIVALS: Mapping[str, _Rival] = {
    "plain": _Rival("plain DataFusion, 2 threads", children.plain, 1.05, 1.5),
    "daft": _Rival(
        "Daft on Ray, 2 CPUs",
        lambda folder: children.other("daft_on_ray", data.plain_strings(folder)),
        0.5,
    ),
    "spark": _Rival("Spark local[2]", lambda folder: children.other("spark", folder), 0.2),
}


@dataclass(slots=True)
class _Pair:
    """Best times of one query for both engines, or why it was not compared."""

    ours: float = math.inf
    theirs: float = math.inf
    trouble: str = ""
    is_ours: bool = False
    """Return whether Caraway failed, rather than the engine it is compared with."""


class _Race:
    """Runs the queries on the cluster and on one rival alternately."""

    def __init__(
        self, cluster: clusters.Cluster, rival: children.Rival, settings: Settings
    ) -> None:
        self._cluster = cluster
        self._rival = rival
        self._settings = settings
        self._sql = {path.stem: path.read_text() for path in QUERIES}
        self.pairs = {query: _Pair() for query in self._sql}

    def run(self, reference: children.Rival) -> Mapping[str, _Pair]:
        """Run all queries once as warm-up and to compare results, then time them in rounds.

        Each round runs all queries, since rivals with a JIT compiler get faster with every query.
        """
        for query, pair in self.pairs.items():
            with _noted(pair):
                self._compare(reference, query)
        for turn in range(self._settings.runs):
            for query, pair in self.pairs.items():
                if not pair.trouble:
                    with _noted(pair):
                        self._time(query, turn)
        for query, pair in self.pairs.items():
            print(f"    {query}: {pair.trouble or _times(pair)}", flush=True)
        return self.pairs

    def _compare(self, reference: children.Rival, query: str) -> None:
        sql, limit_s = self._sql[query], self._settings.limit_s
        expected = reference.answer(sql, limit_s)
        rows = asking.ask(self._cluster.url, sql, limit_s).rows
        if (why := answers.difference(expected, rows)) is not None:
            raise asking.FailedError(f"different result: {why}")
        if (why := answers.difference(expected, self._rival.answer(sql, limit_s))) is not None:
            raise children.RivalError(f"different result: {why}")

    def _time(self, query: str, turn: int) -> None:
        """Time a query on both, in alternating order: the second one benefits from warm caches."""
        pair, sql, limit_s = self.pairs[query], self._sql[query], self._settings.limit_s
        if turn % 2:
            pair.theirs = min(pair.theirs, self._rival.time(sql, limit_s))
        pair.ours = min(pair.ours, asking.ask(self._cluster.url, sql, limit_s).seconds)
        if not turn % 2:
            pair.theirs = min(pair.theirs, self._rival.time(sql, limit_s))


@contextlib.contextmanager
def _noted(pair: _Pair) -> Iterator[None]:
    try:
        yield
    except (asking.FailedError, children.RivalError) as exc:
        pair.is_ours = isinstance(exc, asking.FailedError)
        pair.trouble = f"{'Caraway: ' if pair.is_ours else ''}{' '.join(str(exc).split())[:200]}"


def measure(settings: Settings) -> Section:
    """Compare with each rival, one rival at a time."""
    folder = data.tpch(settings.scale)
    rounds: dict[str, Mapping[str, _Pair]] = {}
    with clusters.cluster(data.manifest(folder), executors=2) as cluster:
        for key in settings.rivals:
            print(f"  against {_RIVALS[key].name}", flush=True)
            with children.plain(folder) as reference, _RIVALS[key].start(folder) as rival:
                rounds[key] = _Race(cluster, rival, settings).run(reference)
    figures = [
        figure
        for key, pairs in rounds.items()
        for figure in _figures(_RIVALS[key], pairs, settings)
    ]
    return Section("cluster-tpch", figures, _table(rounds) + _troubles(rounds))


def _times(pair: _Pair) -> str:
    ratio = pair.ours / pair.theirs
    return f"{pair.ours * 1000:8.1f} ms, {pair.theirs * 1000:8.1f} ms, ratio {ratio:.2f}"


def _figures(rival: _Rival, pairs: Mapping[str, _Pair], settings: Settings) -> Iterator[Figure]:
    both = {query: pair for query, pair in pairs.items() if not pair.trouble}
    ours = sum(pair.ours for pair in both.values())
    theirs = sum(pair.theirs for pair in both.values())
    ratio = ours / theirs if theirs else math.nan
    is_whole = not any(pair.is_ours for pair in pairs.values())
    yield Figure(
        f"TPC-H scale {settings.scale} on 2 single-core executors, {len(both)} queries; "
        f"{rival.name}",
        f"{ours:.2f} s", f"{theirs:.2f} s", ratio, f"≤ {rival.goal}",
        is_whole and ratio <= rival.goal,
    )  # fmt: skip
    if rival.query_goal is None or not both:
        return
    query, worst = max(both.items(), key=lambda item: item[1].ours / item[1].theirs)
    ratio = worst.ours / worst.theirs
    yield Figure(
        f"the slowest of these queries by comparison, {query}; {rival.name}",
        f"{worst.ours * 1000:.0f} ms", f"{worst.theirs * 1000:.0f} ms", ratio,
        f"≤ {rival.query_goal:g}", ratio <= rival.query_goal,
    )  # fmt: skip


def _table(rounds: Mapping[str, Mapping[str, _Pair]]) -> str:
    """Return a table with a row per query: our time, and each rival's time with the ratio."""
    names = [_RIVALS[key].name for key in rounds]
    lines = [
        "Times in milliseconds, best of the runs. In brackets: Caraway's time divided by the other "
        "engine's time, measured alternately.\n",
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
    return "-" if math.isinf(seconds) else f"{seconds * 1000:.0f}"


def _troubles(rounds: Mapping[str, Mapping[str, _Pair]]) -> str:
    found = [
        f"- {query}, {_RIVALS[key].name}: {pair.trouble}"
        for key, pairs in rounds.items()
        for query, pair in pairs.items()
        if pair.trouble
    ]
    return "\n\nNot compared:\n\n" + "\n".join(found) if found else ""
