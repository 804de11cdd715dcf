"""Lists the executors for `/v1/cluster/executors` and for the table `runtime.executors`."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from caraway_core.protocols.dispatch import ExecutorStatus

SCHEMA = pa.schema(
    [
        pa.field("executor_id", pa.string(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("address", pa.string(), nullable=False),
        pa.field("cores", pa.int64(), nullable=False),
        pa.field("memory_bytes", pa.int64(), nullable=False),
        pa.field("memory_used_bytes", pa.int64(), nullable=False),
        pa.field("active_tasks", pa.int64(), nullable=False),
        pa.field("finished_tasks", pa.int64(), nullable=False),
        pa.field("failed_tasks", pa.int64(), nullable=False),
        pa.field("catalog_version", pa.int64()),
        pa.field("holds", pa.list_(pa.string()), nullable=False),
        pa.field("heartbeat_age_ms", pa.int64(), nullable=False),
        pa.field("protocol_version", pa.int64(), nullable=False),
        pa.field("build", pa.string(), nullable=False),
        pa.field("incarnation", pa.string(), nullable=False),
    ]
)


def rows(executors: Sequence[ExecutorStatus]) -> list[dict[str, Any]]:
    """Return the executors as rows of the listing."""
    return [_row(status) for status in executors]


def table(executors: Sequence[ExecutorStatus]) -> pa.Table:
    """Return the executors as an Arrow table."""
    return pa.Table.from_pylist(rows(executors), schema=SCHEMA)


def _row(status: ExecutorStatus) -> dict[str, object]:
    return {
        "executor_id": status.executor_id,
        "state": status.state,
        "reason": status.reason or None,
        "address": status.address,
        "cores": status.cores,
        "memory_bytes": status.memory_bytes,
        "memory_used_bytes": status.memory_used_bytes,
        "active_tasks": status.active_tasks,
        "finished_tasks": status.finished_tasks,
        "failed_tasks": status.failed_tasks,
        "catalog_version": status.catalog_version,
        "holds": list(status.holds),
        "heartbeat_age_ms": round(status.heartbeat_age_s * 1000),
        "protocol_version": status.protocol_version,
        "build": status.build,
        "incarnation": status.incarnation,
    }
