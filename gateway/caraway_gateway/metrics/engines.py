"""Metrics of the engine processes, and the rows of `runtime.engines`."""

from collections.abc import Iterable

import pyarrow as pa
from prometheus_client.core import Metric

from caraway_core.protocols.engines import EngineReport
from caraway_serving.metric_families import Families

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


def collect(report: EngineReport, families: Families) -> Iterable[Metric]:
    """Yield the metric families of a report."""
    memory: dict[tuple[str, ...], float] = {}
    statements: dict[tuple[str, ...], float] = {}
    for each in report.processes:
        memory[(each.engine,)] = memory.get((each.engine,), 0) + each.memory_bytes
        statements[(each.engine,)] = statements.get((each.engine,), 0) + each.statements
    yield families.gauges(
        "engine_memory_bytes",
        "Private memory of engine processes, in bytes.",
        ("engine",),
        memory,
    )
    yield families.gauges(
        "engine_active_statements",
        "Statements that run in engine processes.",
        ("engine",),
        statements,
    )
    yield families.counter(
        "engine_ends",
        "Engine processes that crashed or were ended, by cause.",
        ("cause",),
        {(cause,): count for cause, count in report.ends.items()},
    )
    yield families.counter(
        "engine_refused_statements",
        "Statements that were refused because they crashed engine processes, by cause.",
        ("cause",),
        {(cause,): count for cause, count in report.refusals.items()},
    )


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
