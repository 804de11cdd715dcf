"""Metrics of the quotas of tables that all callers share."""

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.core import Metric

from caraway_core.concurrency.quotas import Quota
from caraway_serving.metric_families import Families

_TABLE = ("table",)


def collect(quotas: Mapping[str, Quota[Any]], families: Families) -> Iterable[Metric]:
    """Yield the metric families. Holders are counted, not named: their number has no limit."""
    by_table = [((table,), quota) for table, quota in sorted(quotas.items())]
    yield families.gauges(
        "quota_entries",
        "Entries of a shared table.",
        _TABLE,
        {table: len(quota) for table, quota in by_table},
    )
    yield families.gauges(
        "quota_entries_limit",
        "Maximum entries of a shared table.",
        _TABLE,
        {table: quota.limits.most for table, quota in by_table if quota.limits.most is not None},
    )
    yield families.gauges(
        "quota_size_bytes",
        "Bytes of the entries of a shared table, where they are counted.",
        _TABLE,
        {table: quota.size_bytes for table, quota in by_table},
    )
    yield families.gauges(
        "quota_holders",
        "Keys or addresses that have entries of a shared table.",
        _TABLE,
        {table: quota.holders for table, quota in by_table},
    )
    yield families.gauges(
        "quota_largest_holder_entries",
        "Entries of the key or address that has most.",
        _TABLE,
        {table: quota.most_held for table, quota in by_table},
    )
    yield families.counter(
        "quota_evictions",
        "Entries that made room for others.",
        _TABLE,
        {table: quota.evictions for table, quota in by_table},
    )
    yield families.counter(
        "quota_refusals",
        "Entries that were refused.",
        _TABLE,
        {table: quota.refusals for table, quota in by_table},
    )
