"""One SELECT, and how the next operation is put around it or into it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from caraway_engine.client_plans.words import PlanTerm

SortKey = tuple[PlanTerm, str]


@dataclass(frozen=True, slots=True)
class Block:
    """A SELECT whose parts are still apart.

    `grouping` is None for rows that are not grouped, and "" for one group of all rows.
    """

    source: str
    columns: tuple[PlanTerm, ...]
    where: tuple[PlanTerm, ...] = ()
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    grouping: str | None = None
    is_compound: bool = False
    """True if the source joins or combines several tables."""

    @property
    def is_cut(self) -> bool:
        """Return whether a limit or an offset leaves out rows."""
        return self.limit is not None or self.offset > 0

    @property
    def is_plain(self) -> bool:
        """Return whether the columns are those of the source, unchanged."""
        return self.grouping is None and all(each.is_column for each in self.columns)

    @property
    def is_bare(self) -> bool:
        """Return whether the block selects all rows and columns of its source, in any order."""
        return self.is_plain and not self.where and not self.order and not self.is_cut

    def select(self, names: Sequence[str] = ()) -> str:
        """Return the whole statement; columns are called by `inner_name` without names."""
        called = list(names) or list(map(inner_name, range(len(self.columns))))
        items = [f"{term.sql} AS {name}" for term, name in zip(self.columns, called, strict=False)]
        sql = f"SELECT {', '.join(items) or '1 AS __0'} FROM {self.source}"
        if self.where:
            many = len(self.where) > 1
            terms = [
                each.operand if many and each.chain != "and" else each.sql for each in self.where
            ]
            sql += f" WHERE {' AND '.join(terms)}"
        if self.grouping:
            sql += f" GROUP BY {self.grouping}"
        if self.order:
            sql += f" ORDER BY {', '.join(f'{term.operand} {way}' for term, way in self.order)}"
        if self.limit is not None:
            sql += f" LIMIT {self.limit}"
        if self.offset:
            sql += f" OFFSET {self.offset}"
        return sql


def inner_name(place: int) -> str:
    """Return the name of a column of a subquery, which tables hardly have: ORDER BY reads both."""
    return f"__{place}"


class Aliases:
    """Gives each table and subquery of a statement a name of its own."""

    def __init__(self) -> None:
        self._numbers = count()

    def next(self) -> str:
        """Return a new name."""
        return f"q{next(self._numbers)}"

    def wrapped(self, block: Block) -> Block:
        """Return a block that reads the rows of another one as a subquery, in their order."""
        alias = self.next()
        keys = tuple(term for term, _ in block.order)
        width = len(block.columns)
        inner = replace(block, columns=(*block.columns, *keys))
        if not block.is_cut:
            inner = replace(inner, order=())
        columns = tuple(
            PlanTerm(f"{alias}.{inner_name(place)}", term.type, is_column=True, is_atomic=True)
            for place, term in enumerate(inner.columns)
        )
        order = tuple((columns[width + place], way) for place, (_, way) in enumerate(block.order))
        return Block(f"({inner.select()}) AS {alias}", columns[:width], order=order)

    def plain(self, block: Block) -> Block:
        """Return a block whose columns are those of its source, and which keeps all rows."""
        return block if block.is_plain and not block.is_cut else self.wrapped(block)

    def item(self, block: Block, *, alone: bool) -> Block:
        """Return a block that can be an item of a FROM; `alone` where it may not be a join."""
        if block.is_bare and not (alone and block.is_compound):
            return block
        return replace(self.wrapped(block), order=())
