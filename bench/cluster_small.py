"""The overhead of a cluster for a query on one small table."""

import statistics

from bench import asking, clusters, data, servers
from bench.report import Figure, Section
from bench.settings import Settings

SQL = "SELECT n_regionkey, count(*) AS nations FROM nation GROUP BY n_regionkey ORDER BY 1"
_ROUNDS, _WARM = 400, 40
_GOAL_MS = 5.0


def measure(settings: Settings) -> Section:
    """Query a cluster and a standalone runtime alternately, and compare the medians."""
    manifest = data.manifest(data.tpch(settings.scale))
    with (
        servers.caraway(manifest) as (alone_url, _),
        clusters.cluster(manifest, executors=2) as cluster,
    ):
        alone, there = asking.Connection(alone_url), asking.Connection(cluster.url)
        pairs = [(there.time(SQL), alone.time(SQL)) for _ in range(_ROUNDS + _WARM)][_WARM:]
    ours_ms, alone_ms = (statistics.median(each) * 1000 for each in zip(*pairs, strict=True))
    added_ms = ours_ms - alone_ms
    figure = Figure(
        "query on one small table, two executors, median; the standalone runtime",
        f"{ours_ms:.1f} ms", f"{alone_ms:.1f} ms", ours_ms / alone_ms,
        f"≤ {_GOAL_MS:.0f} ms more", added_ms <= _GOAL_MS,
    )  # fmt: skip
    ninth_ms = statistics.quantiles((pair[0] * 1000 for pair in pairs), n=10)[-1]
    text = (
        f"The cluster adds {added_ms:.1f} ms at the median. Its 90th percentile is "
        f"{ninth_ms:.1f} ms."
    )
    return Section("cluster-small", [figure], text)
