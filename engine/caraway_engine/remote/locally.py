"""Applies filters here that the engine pushed into a scan but the database cannot evaluate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caraway_engine.remote import filters
from caraway_engine.remote.filters import FilterCall
from caraway_engine.remote.kinds import NotPushableError

_BATCH_ROWS = 64 * 1024


@dataclass(frozen=True, slots=True)
class LocalCondition:
    """Conditions that must all hold. Those that cannot be parsed are kept together in `unread`."""

    calls: Sequence[FilterCall] = ()
    unread: Any = None

    @classmethod
    def from_filter(cls, expression: object) -> "LocalCondition":
        """Parse a pyarrow filter; None means no filter, and a constant is passed as a scalar."""
        if expression is None:
            return cls()
        if isinstance(expression, pa.Scalar):
            return cls((FilterCall("literal", value=expression),))
        try:
            calls = filters.conjuncts(filters.read(expression))
        except NotPushableError:
            return cls(unread=expression)
        return cls(calls) if all(map(filters.is_known, calls)) else cls(unread=expression)

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns that the condition reads; None if it may read any."""
        if self.unread is not None:
            return None
        return frozenset(name for call in self.calls for name in filters.columns(call))

    def parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows that meet the condition, in batches small enough to run in parallel."""
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            part = batch.slice(start, _BATCH_ROWS)
            if self.unread is not None:
                yield from pa.Table.from_batches([part]).filter(self.unread).to_batches()
                continue
            for call in self.calls:
                found = filters.evaluate(call, part)
                if isinstance(found, pa.Scalar):
                    part = part if found.as_py() else part.slice(0, 0)
                else:
                    part = part.filter(found)
            yield part
