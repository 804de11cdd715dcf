"""Metrics of the engine processes, and the rows of `runtime.engines`."""

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa
from prometheus_client.core import Metric

from caraway_core.protocols.engines import EngineReport, EngineStatus
from caraway_serving.metric_families import Families, Table, counter, gauge

_SCHEMA = pa.schema(
    [
        ("engine", pa.string()),
        ("pid", pa.int64()),
        ("started_at", pa.timestamp("ms", tz="UTC")),
        ("memory_bytes", pa.int64()),
        ("limit_bytes", pa.int64()),
        ("statements", pa.int64()),
    ]
)


def _sums(report: EngineReport, figure: Callable[[EngineStatus], int]) -> Mapping[str, int]:
    """Return the sum of a figure over the processes of each engine."""
    found: dict[str, int] = {}
    for each in report.processes:
        found[each.engine] = found.get(each.engine, 0) + figure(each)
    return found


_ENGINES: Table[EngineReport] = (
    gauge("engine_memory_bytes", "Private memory of engine processes, in bytes.",
          "engine", lambda of: _sums(of, lambda each: each.memory_bytes)),
    gauge("engine_active_statements", "Statements that run in engine processes.",
          "engine", lambda of: _sums(of, lambda each: each.statements)),
    counter("engine_ends", "Engine processes that crashed or were ended, by cause.",
            "cause", lambda of: of.ends),
    counter("engine_refused_statements",
            "Statements that were refused because they crashed engine processes, by cause.",
            "cause", lambda of: of.refusals),
)  # fmt: skip


def collect(report: EngineReport, families: Families) -> Iterable[Metric]:
    """Yield the metric families of a report."""
    return families.families_of(_ENGINES, report)


def table(report: EngineReport) -> pa.Table:
    """Return the rows of `runtime.engines`."""
    rows = [
        {
            "engine": each.engine,
            "pid": each.pid,
            "started_at": each.started_at_ms,
            "memory_bytes": each.memory_bytes,
            "limit_bytes": each.limit_bytes,
            "statements": each.statements,
        }
        for each in report.processes
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
