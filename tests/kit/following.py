"""A dataset in memory that accepts changes, for tests of change sources."""

from collections.abc import Mapping
from typing import Any

from caraway_core.changes import OFFSET, OP, SOURCE_BYTES, Changes, Op

Rows = dict[tuple[Any, ...], Mapping[str, Any]]


class Replica:
    """Applies changes by the rules of `caraway_core.changes`, one key at a time."""

    def __init__(self, *key: str) -> None:
        self._key = key
        self.rows: Rows = {}
        self._offsets: dict[tuple[Any, ...], bytes] = {}
        self.ops: list[Op] = []
        self.position: str | None = None

    def apply(self, changes: Changes, position: str) -> None:
        for change in changes.rows.to_pylist():
            op, offset = Op(change.pop(OP)), change.pop(OFFSET)
            self.ops.append(op)
            self._apply(op, offset, change)
        self.position = position

    def _apply(self, op: Op, offset: bytes | None, row: dict[str, Any]) -> None:
        if op is Op.TRUNCATE:
            self.rows.clear()
            self._offsets.clear()
            return
        key = tuple(row[name] for name in self._key)
        last = self._offsets.get(key)
        if offset is not None:
            if last and last[:SOURCE_BYTES] == offset[:SOURCE_BYTES] and offset < last:
                return
            self._offsets[key] = offset
        if op is Op.UPSERT:
            self.rows[key] = row
        elif op is Op.DELETE:
            self.rows.pop(key, None)
        else:
            raise AssertionError(f"no source says {op!r}")
