"""Debezium change events for tests, and readers for the decoded changes."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from caraway_core.changes import OFFSET, OP, Changes, Op
from caraway_plugins.changes import decoding
from caraway_plugins.changes.target import ChangeTarget

ORDERS = ChangeTarget(
    pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(10, 2))]),
    ("id",),
)
JSON = "application/json"
Row = dict[str, Any]


def event(op: str, after: Row | None = None, before: Row | None = None, **more: Any) -> Row:
    return {"op": op, "before": before, "after": after, **more}


def postgres(lsn: int | None, table: str = "orders", name: str = "shop") -> Row:
    return {"connector": "postgresql", "name": name, "db": "db", "schema": "public",
            "table": table, "lsn": lsn, "txId": 7}  # fmt: skip


def decode(
    body: Any,
    target: ChangeTarget = ORDERS,
    content_type: str = JSON,
    headers: Mapping[str, str] | None = None,
) -> Changes:
    """Decode a body, or values that are first encoded as JSON."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    return decoding.decode(content, content_type, headers or {}, target)


def told(changes: Changes) -> Sequence[tuple[str, Row]]:
    """Return the operation and the non-NULL columns of each change."""
    return [
        (
            Op(row[OP]).name,
            {k: v for k, v in row.items() if k not in (OP, OFFSET) and v is not None},
        )
        for row in changes.rows.to_pylist()
    ]
