"""A SELECT that is put together step by step, from the table outwards."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from caraway_core.tables import RemoteTable
from caraway_engine.remote import words
from caraway_engine.remote.words import NotPushableError, Term


@dataclass(frozen=True, slots=True)
class RemoteQuery:
    """A SELECT of one table, or of another query over it.

    `keys` are what it groups by, None where it does not. `is_reducing` tells that the database does
    more than to read and filter.
    """

    table: RemoteTable
    source: str
    columns: tuple[Term, ...]
    tests: tuple[str, ...] = ()
    keys: tuple[str, ...] | None = None
    order: tuple[str, ...] = ()
    limit: int | None = None
    offset: int = 0
    is_reducing: bool = False

    def filtered(self, test: Term) -> "RemoteQuery":
        """Keep the rows that meet a condition."""
        if test.kind != "bool" or not test.is_exact:
            raise NotPushableError("a condition")
        if not self._is_open:
            raise NotPushableError("a condition on groups")
        return replace(self, tests=(*self.tests, test.sql))

    def prefiltered(self, test: Term) -> "RemoteQuery":
        """Leave out rows that do not meet a condition, which will be looked at again."""
        if test.kind != "bool" or not self._is_open:
            raise NotPushableError("a condition")
        return replace(self, tests=(*self.tests, test.sql))

    def selected(self, columns: Sequence[Term]) -> "RemoteQuery":
        """Give other columns, which are worded over those of this query."""
        return replace(self, columns=tuple(columns))

    def grouped(self, keys: Sequence[Term], measures: Sequence[Term]) -> "RemoteQuery":
        """Group the rows."""
        if not self._is_open or not all(
            each.kind not in ("", "double") and each.is_exact for each in keys
        ):
            raise NotPushableError("a grouping")
        texts = tuple(each.sql for each in keys)
        return replace(self, columns=(*keys, *measures), keys=texts, is_reducing=True)

    def limited(self, order: Sequence[str], limit: int | None, offset: int) -> "RemoteQuery":
        """Order the rows, and take some of them."""
        if self.limit is not None or self.order:
            raise NotPushableError("a limit of a limit")
        return replace(self, order=tuple(order), limit=limit, offset=offset, is_reducing=True)

    def sql(self, schema: pa.Schema) -> str:
        """Word the query, with columns as they are sent for a schema."""
        columns = [
            words.sent(term, field.type) for term, field in zip(self.columns, schema, strict=True)
        ]
        parts = [f"SELECT {', '.join(columns) or 'TRUE'} FROM {self.source}"]
        if self.tests:
            parts.append(f"WHERE {' AND '.join(self.tests)}")
        if self.keys:
            parts.append(f"GROUP BY {', '.join(self.keys)}")
        if self.order:
            parts.append(f"ORDER BY {', '.join(self.order)}")
        if self.limit is not None:
            parts.append(f"LIMIT {self.limit}")
        if self.offset:
            parts.append(f"OFFSET {self.offset}")
        return " ".join(parts)

    @property
    def _is_open(self) -> bool:
        """Whether rows can still be left out before all else."""
        return self.keys is None and self.limit is None and not self.order
