"""A SELECT that is built step by step, starting at a table or at a join of two SELECTs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa

from caraway_core.tables import RemoteTable
from caraway_engine.remote import words
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.words import SqlWriter, WritersOfReaders

Condition = Callable[[Sequence[Term]], Term]


@dataclass(frozen=True, slots=True)
class RemoteQuery:
    """A SELECT over one table, or over a join of two other queries; `table` is the first one.

    `keys` are the GROUP BY expressions, or None. `is_reducing` means that the database does more
    than read and filter.
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
    writers: WritersOfReaders = words.of_reader

    @property
    def writer(self) -> SqlWriter:
        """What writes expressions for the database of the table."""
        return self.writers(self.table.reader)

    def filtered(self, test: Term) -> "RemoteQuery":
        """Add a condition, which the database evaluates exactly."""
        if test.kind != "bool" or not test.is_exact:
            raise NotPushableError("a condition")
        if not self._is_open:
            raise NotPushableError("a condition on groups")
        return replace(self, tests=(*self.tests, test.sql))

    def prefiltered(self, test: Term) -> "RemoteQuery":
        """Add a condition that may keep too many rows; the engine evaluates it again."""
        if test.kind != "bool" or not self._is_open:
            raise NotPushableError("a condition")
        return replace(self, tests=(*self.tests, test.sql))

    def selected(self, columns: Sequence[Term]) -> "RemoteQuery":
        """Replace the columns by expressions over the columns of this query."""
        return replace(self, columns=tuple(columns))

    def grouped(self, keys: Sequence[Term], measures: Sequence[Term]) -> "RemoteQuery":
        """Group the rows."""
        self.writer.need("group")
        if not self._is_open or not all(
            each.kind not in ("", "double") and each.is_exact and not each.is_prefiltered
            for each in keys
        ):
            raise NotPushableError("a grouping")
        if not keys and not measures:
            raise NotPushableError("a group of nothing")
        texts = tuple(each.sql for each in keys)
        return replace(self, columns=(*keys, *measures), keys=texts, is_reducing=True)

    def limited(self, order: Sequence[str], limit: int | None, offset: int) -> "RemoteQuery":
        """Order the rows, and apply a limit and an offset."""
        if limit is not None:
            self.writer.need("limit")
        if offset:
            self.writer.need("offset")
        if self.limit is not None or self.order:
            raise NotPushableError("a limit of a limit")
        return replace(self, order=tuple(order), limit=limit, offset=offset, is_reducing=True)

    def joined(self, other: "RemoteQuery", verb: str, condition: Condition) -> "RemoteQuery":
        """Join with the rows of another query, which the same login reads.

        Each side is a query in parentheses: what it leaves out and computes comes before the join.
        """
        if (self.table.reader, self.table.login) != (other.table.reader, other.table.login):
            raise NotPushableError("tables of two databases")
        left, ours = self._side(0)
        right, theirs = other._side(1)
        test = condition((*ours, *theirs))
        if test.kind != "bool" or not test.is_exact:
            raise NotPushableError("a condition of a join")
        source = f"{left} {verb} {right} ON {test.sql}"
        return RemoteQuery(self.table, source, (*ours, *theirs))

    def sql(self, schema: pa.Schema) -> str:
        """Return the SQL text, with columns converted to what the driver sends for a schema."""
        columns = [
            self.writer.sent(term, field.type, is_group=self.keys is not None)
            for term, field in zip(self.columns, schema, strict=True)
        ]
        if self.order or self.writer.names_answers:
            columns = [
                f"{each} AS {name}" for each, name in zip(columns, self._names(), strict=False)
            ]
        parts = [self._rows(columns)]
        if self.order:
            parts.append(f"ORDER BY {', '.join(self.order)}")
        if self.limit is not None:
            parts.append(f"LIMIT {self.limit}")
        elif self.offset and (no_limit := self.writer.no_limit):
            parts.append(no_limit)
        if self.offset:
            parts.append(f"OFFSET {self.offset}")
        return " ".join(parts)

    def _rows(self, columns: Sequence[str]) -> str:
        """Return the SQL text without an order and a limit."""
        parts = [f"SELECT {', '.join(columns) or 'TRUE'} FROM {self.source}"]
        if self.tests:
            parts.append(f"WHERE {' AND '.join(self.tests)}")
        if self.keys:
            parts.append(f"GROUP BY {', '.join(self.keys)}")
        return " ".join(parts)

    def _side(self, number: int) -> tuple[str, tuple[Term, ...]]:
        """Return this query as one side of a join, and its columns there."""
        if self.limit is not None or self.offset or self.order:
            raise NotPushableError("a join of first rows")
        quoted = self.writer.quoted
        alias = quoted(f"side{number}")
        names = [quoted(f"column{place}") for place in range(len(self.columns))]
        columns = [f"{each.sql} AS {name}" for each, name in zip(self.columns, names, strict=True)]
        made = zip(self.columns, names, strict=True)
        terms = tuple(replace(each, sql=f"{alias}.{name}", is_literal=False) for each, name in made)
        return f"({self._rows(columns)}) AS {alias}", terms

    def _names(self) -> Iterator[str]:
        """Return names of the answer's columns that no column of the table has.

        A key of ORDER BY that is a name is a column of the answer first, and that may be text.
        """
        prefix = "answer"
        while any(each.name.startswith(prefix) for each in self.table.columns):
            prefix += "_"
        return (self.writer.quoted(f"{prefix}{number}") for number in count())

    @property
    def _is_open(self) -> bool:
        """True if a condition can still be added before all other steps."""
        return self.keys is None and self.limit is None and not self.order
