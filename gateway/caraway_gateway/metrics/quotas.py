"""Metrics of the quotas of tables that all callers share."""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import Metric

from caraway_core.concurrency.quotas import Quota
from caraway_serving.metric_families import Families, Table, counter, gauge

_QUOTAS: Table[Quota[Any]] = (
    gauge("quota_entries", "Entries of a shared table.", "table", len),
    gauge("quota_entries_limit", "Maximum entries of a shared table.",
          "table", lambda of: of.limits.most),
    gauge("quota_size_bytes", "Bytes of the entries of a shared table, where they are counted.",
          "table", lambda of: of.size_bytes),
    gauge("quota_holders", "Keys or addresses that have entries of a shared table.",
          "table", lambda of: of.holders),
    gauge("quota_largest_holder_entries", "Entries of the key or address that has most.",
          "table", lambda of: of.most_held),
    counter("quota_evictions", "Entries that made room for others.",
            "table", lambda of: of.evictions),
    counter("quota_refusals", "Entries that were refused.", "table", lambda of: of.refusals),
)  # fmt: skip


def collect(quotas: Mapping[str, Quota[Any]], families: Families) -> Iterable[Metric]:
    """Yield the metric families. Holders are counted, not named: their number has no limit."""
    return families.of_each(_QUOTAS, dict(sorted(quotas.items())))
