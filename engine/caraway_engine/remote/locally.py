"""Filters that the engine has pushed into a scan, and that are applied to the rows here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caraway_engine.remote import filters
from caraway_engine.remote.filters import FilterCall
from caraway_engine.remote.words import NotPushableError

_BATCH_ROWS = 64 * 1024


@dataclass(frozen=True, slots=True)
class LocalCondition:
    """Conditions that all have to hold; those that cannot be read are `unread`, in one."""

    calls: Sequence[FilterCall] = ()
    unread: Any = None

    @classmethod
    def of(cls, expression: Any) -> "LocalCondition":
        """Read a filter of pyarrow; None is none, and a constant comes as a value."""
        if expression is None:
            return cls()
        if isinstance(expression, pa.Scalar):
            return cls((FilterCall("literal", value=expression),))
        try:
            found = filters.conjuncts(filters.read(expression))
        except NotPushableError:
            return cls(unread=expression)
        return cls(found) if all(map(filters.is_known, found)) else cls(unread=expression)

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns that it reads; None: it may read any."""
        if self.unread is not None:
            return None
        return frozenset(name for call in self.calls for name in filters.columns(call))

    def parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows that meet it, in batches that the engine can share out."""
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
