"""MERGE into tables whose rows are replaced by their places, as one query of the engine."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import InvalidQueryError
from caraway_core.protocols.remote import FILE, POSITION
from caraway_core.sqltext import builtin_functions, merge_statements
from caraway_core.sqltext.merge_statements import MergeClause, MergeStatement, Side
from caraway_core.sqltext.token_reader import TokenReader
from caraway_core.tables import RemoteTable
from caraway_engine.remote import replacing
from caraway_engine.remote.replacing import ReplacedRows
from caraway_engine.remote.writing import COLUMN

_SOURCE = "row of the source"
_CLAUSES, _CLAUSE = "clauses of the statement", "clause of the statement"
_PLACES = (FILE, POSITION)


@dataclass(frozen=True, slots=True)
class _MergedRows:
    """The rows of a MERGE that change, with the value that each clause gives a column.

    `values` are the names of such columns, by the clause and the column of the table.
    """

    table: RemoteTable
    values: Mapping[tuple[int, str], str]
    deleting: frozenset[int]

    @property
    def columns(self) -> pa.Schema:
        """The columns of the rows."""
        own = self.table.schema
        values = [
            pa.field(name, own.field(column).type, metadata={COLUMN: column})
            for (_, column), name in self.values.items()
        ]
        return pa.schema([*replacing.PLACES, pa.field(_CLAUSE, pa.int64()), *own, *values])

    def replaced(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return replaced rows, each with the values of its clause."""
        clause = batch.column(_CLAUSE)
        made = {name: batch.column(name) for name in self.table.schema.names}
        for (number, column), name in self.values.items():
            is_set = pc.equal(clause, number)
            made[column] = pc.if_else(is_set, batch.column(name), made[column])
        deleting = pa.array(sorted(self.deleting), clause.type)
        is_added = pc.invert(pc.is_in(clause, deleting))
        places = [batch.column(name) for name in _PLACES]
        schema = replacing.columns(self.table)
        return pa.RecordBatch.from_arrays([*places, is_added, *made.values()], schema=schema)


def planned(sql: str, table: RemoteTable, plan: Callable[[str], object]) -> ReplacedRows:
    """Plan the rows of a MERGE; `plan` plans a query over the table with places.

    Raises:
        InvalidQueryError: a clause cannot be carried out.
    """
    merge = _Merge(table, merge_statements.parse(sql))
    for text in merge.checks():
        plan(text)
    numbered = merge.numbered
    deleting = frozenset(n for n, each in numbered.items() if each.action == "delete")
    frame = plan(merge.text())
    values = {key: _name(*key) for key in merge.values}
    merged = _MergedRows(table, values, deleting)
    return ReplacedRows(frame, merged.columns, merged.replaced)


class _Merge:
    """A MERGE as a query: the clauses have numbers, in their order."""

    def __init__(self, table: RemoteTable, statement: MergeStatement) -> None:
        self._table, self._statement = table, statement
        self._source, self._alias = self._marked()
        self.numbered = dict(enumerate(statement.clauses, start=1))
        self.values = {
            (number, column): value
            for number, each in self.numbered.items()
            for column, value in self._sets(each).items()
        }

    def checks(self) -> Iterator[str]:
        """Yield queries that fail if a clause names a table whose rows it does not have."""
        tables = {"source": self._statement.source, "table": self._statement.table}
        for number, each in self.numbered.items():
            texts = [value for (of, _), value in self.values.items() if of == number]
            texts += [each.condition] if each.condition else []
            if texts and each.side in tables:
                outputs = (f"{text} AS {_quoted(str(n))}" for n, text in enumerate(texts))
                yield f"SELECT {', '.join(outputs)} FROM {tables[each.side]}"

    def text(self) -> str:
        """Return the query of the rows that change."""
        on = " AND ".join(f"({each.up_to()})" for each in self._statement.on)
        has_left = any(each.side == "table" for each in self.numbered.values())
        kind = "FULL" if has_left else "RIGHT"
        # A join with the numbers names the chosen one, so that its conditions are written once.
        clause = f"{_quoted(_CLAUSES)}.{_quoted(_CLAUSE)}"
        outputs = [self._own(name) for name in _PLACES]
        outputs.append(clause)
        outputs += (self._own(name) for name in self._table.schema.names)
        outputs += (
            f"CASE WHEN {clause} = {number} THEN ({value}) END AS {_quoted(_name(number, column))}"
            for (number, column), value in self.values.items()
        )
        rows = f"{self._statement.table} {kind} JOIN {self._source} ON {on}"
        numbers = ", ".join(f"({number})" for number in self.numbered)
        clauses = f"(VALUES {numbers}) AS {_quoted(_CLAUSES)}({_quoted(_CLAUSE)})"
        return (
            f"SELECT {', '.join(outputs)} FROM {clauses} CROSS JOIN ({rows}) "
            f"WHERE {clause} = {self._chosen()}"
        )

    def _own(self, column: str) -> str:
        return f"{_quoted(self._statement.target)}.{_quoted(column)}"

    def _marked(self) -> tuple[str, str]:
        """Return the source with a column that is not NULL, and the name that it has."""
        reader = TokenReader.of(self._statement.source)
        alias = _SOURCE
        if reader.takes("("):
            reader.part(")")
            reader.needs(")")
        else:
            alias = reader.name()[-1]
        reader.takes("AS")
        if reader.has_more:
            alias = reader.written_name()[1]
        text = f"(SELECT *, 1 AS {_quoted(_SOURCE)} FROM {self._statement.source})"
        return f"{text} AS {_quoted(alias)}", alias

    def _chosen(self) -> str:
        """Return the number of the first clause whose condition holds, NULL if none does."""
        cases = []
        for number, each in self.numbered.items():
            self._check(each.condition)
            condition = f" AND ({each.condition})" if each.condition else ""
            cases.append(f"WHEN {self._has(each.side)}{condition} THEN {number}")
        return f"CASE {' '.join(cases)} END"

    def _has(self, side: Side) -> str:
        """Return the condition that a row of the join is of a side."""
        is_in_table = f"{self._own(POSITION)} IS NOT NULL"
        is_in_source = f"{_quoted(self._alias)}.{_quoted(_SOURCE)} IS NOT NULL"
        if side == "both":
            return f"{is_in_table} AND {is_in_source}"
        return f"NOT ({is_in_table if side == 'source' else is_in_source})"

    def _check(self, condition: str) -> None:
        """Refuse a condition that may hold for one reading of it, and not for the next."""
        words = {each.text.lower() for each in TokenReader.of(condition).left()}
        if called := sorted(words & builtin_functions.RANDOM):
            raise self._refused(
                f"a condition calls {called[0]}(); compute it in USING (SELECT ...)"
            )

    def _sets(self, clause: MergeClause) -> dict[str, str]:
        """Return the values that a clause gives columns of the table."""
        names, sets = self._table.schema.names, clause.sets
        if clause.side == "source" and sets and not sets[0][0]:
            sets = tuple(zip(names, (value for _, value in sets), strict=True))
        return {name: "NULL" if text.upper() == "DEFAULT" else text for name, text in sets}

    def _refused(self, why: str) -> InvalidQueryError:
        title = self._table.title
        return InvalidQueryError(f"MERGE into {title} failed: {why}; {replacing.NOTHING}")


def _name(number: int, column: str) -> str:
    return f"{number} of {column}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
