"""MERGE into tables of databases: the engine computes rows, and the database compares keys.

Values of the source are computed here, with the number of the clause that takes each row. The table
is compared with them, by columns whose equality is the engine's. What reads the table is SQL, which
the database computes for each pair of rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_core.loading import registry
from caraway_core.protocols.remote import (
    ADDED,
    ROW_ALIAS,
    TAKEN,
    MergeKey,
    MergeStep,
    TableMerge,
)
from caraway_core.sqltext import merge_statements
from caraway_core.sqltext.lexer import SqlToken
from caraway_core.sqltext.merge_statements import MergeClause, MergeStatement, Side
from caraway_core.sqltext.token_reader import TokenReader, name_of
from caraway_core.tables import RemoteTable, TableSpec
from caraway_engine.remote import answers, words
from caraway_engine.remote.merge_terms import MergeTerms, MergeText, UntranslatedError
from caraway_engine.remote.writing import InsertingRows, Writing

NOTHING = "no row was changed"
_KEY_KINDS = frozenset({"bool", "int", "uint", "decimal", "text"})
_OTHER_CONDITIONS = frozenset(
    {"OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "SIMILAR", "EXISTS", "<", ">", "<=", ">=",
     "<>", "!=", "~"}
)  # fmt: skip
_SIDES: Sequence[Side] = ("both", "source", "table")
_NUMBER = pa.int64()
_NONE = "CAST(NULL AS BIGINT)"
_MOST_NAME = 40
"""Databases have limits for names of columns, or cut them."""


def merging(
    table: RemoteTable, columns: pa.Schema, merge: TableMerge, start: Callable[[], object]
) -> Writing:
    """Return a MERGE of rows, which `start` returns as a stream of the engine.

    Raises:
        InvalidQueryError: no rows can be merged into tables of this kind.
    """
    merger = answers.merger(table.reader)
    if merger is None:
        raise InvalidQueryError(f"MERGE into {table.title} is not supported")
    return InsertingRows(merger.merge(table, columns, merge), start, columns, NOTHING)


def planned(
    sql: str, table: RemoteTable, source: pa.Schema, plan: Callable[[str], object]
) -> tuple[object, pa.Schema, TableMerge]:
    """Return the rows of a MERGE, their columns, and what becomes of them.

    `source` are the columns of its source, and `plan` plans a query.

    Raises:
        InvalidQueryError: the database may take other rows, or set other values.
    """
    statement = merge_statements.parse(sql)
    terms = MergeTerms(table, statement, source)
    made = _Merge(table, statement, frozenset(source.names), terms)
    try:
        terms.translate(list(made.reading()), plan)
        text = made.text()
        frame = plan(text)
    except QueryError:
        raise
    except UntranslatedError as exc:
        raise made.refused(
            f"its database may compute {exc.part.text[:100]} otherwise than this runtime; compute "
            "in USING (SELECT ...) what is of the source alone"
        ) from exc
    except Exception as exc:
        raise made.refused(
            "its values and conditions cannot be planned; those of rows that one side lacks are "
            "of the other side alone"
        ) from exc
    return frame, pa.schema(made.columns), made.merge()


@dataclass
class _Merge:
    """A MERGE that is taken apart."""

    table: RemoteTable
    statement: MergeStatement
    source: frozenset[str]
    terms: MergeTerms
    columns: list[pa.Field] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    keys: list[MergeKey] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)
    """The column of the table for each column of the rows."""
    matches: list[str] = field(default_factory=list)
    steps: dict[Side, list[MergeStep]] = field(default_factory=dict)

    def refused(self, why: str) -> InvalidQueryError:
        return InvalidQueryError(
            f"MERGE into {self.table.title} is not supported: {why}; {NOTHING}"
        )

    def reading(self) -> Iterator[MergeText]:
        """Yield the parts that may read the table."""
        if self.statement.target in self.source:
            raise self.refused(f"the source has a column '{self.statement.target}', as the target")
        parts = [part for each in self._changing for part in self._parts(each)]
        yield from (
            each for each in (*self._on[1], *parts) if each.is_alone or self._reads(each.text)
        )

    def text(self) -> str:
        """Return the query of the rows."""
        keys, others = self._on
        if not keys and not any(each in self.terms for each in others):
            raise self.refused("ON compares no column of the target")
        self.matches += [self.terms[each] for each in others if each in self.terms]
        conditions = [each.text for each in others if each not in self.terms]
        guard = " AND ".join(f"({each})" for each in conditions)
        for column, value in keys:
            # A row whose other conditions do not hold is equal to none.
            self._add_key(column, f"CASE WHEN {guard} THEN ({value}) END" if guard else value)
        if guard and not keys:
            self.matches.append(self._holding(guard))
        for side in _SIDES:
            self.steps[side] = [self._step(*each) for each in enumerate(self._of(side), start=1)]
        self._add(TAKEN, _NUMBER, _NONE if self._is_paired else self._chosen("both"))
        self._add(ADDED, _NUMBER, self._chosen("source"))
        for column, name in self.terms.operands.items():
            self._add(name, self.terms.types[column], _quoted(column))
        return f"SELECT {', '.join(self.outputs)} FROM {self.statement.source}"

    def merge(self) -> TableMerge:
        return TableMerge(
            tuple(self.keys),
            self.own,
            tuple(self.steps["both"]),
            tuple(self.steps["source"]),
            self._is_paired,
            " AND ".join(self.matches),
            tuple(self.steps["table"]),
        )

    @cached_property
    def _on(self) -> tuple[list[tuple[str, str]], list[MergeText]]:
        """The columns of the table with the values that they are equal to, and other conditions."""
        keys, others = [], []
        for part in self.statement.on:
            tokens = part.left()
            condition = part.up_to()
            if (key := self._key(condition, tokens)) is not None:
                keys.append(key)
            else:
                others.append(MergeText(condition))
        return keys, others

    @property
    def _changing(self) -> Sequence[MergeClause]:
        """The clauses for rows of the table."""
        return [each for each in self.statement.clauses if each.side != "source"]

    @cached_property
    def _is_paired(self) -> bool:
        """True if the clause of a row depends on the table, or rows have to be found otherwise."""
        clauses = self._changing
        parts = [part for each in clauses for part in self._parts(each)]
        found_by = {column for column, _ in self._on[0]}
        return (
            any(each.side == "table" for each in clauses)
            or any(each in self.terms for each in (*parts, *self._on[1]))
            or any(column in found_by for each in clauses for column, _ in each.sets)
        )

    def _of(self, side: Side) -> Sequence[MergeClause]:
        return [each for each in self.statement.clauses if each.side == side]

    def _parts(self, clause: MergeClause) -> Iterator[MergeText]:
        is_alone = clause.side == "table"
        if clause.condition:
            yield MergeText(clause.condition, is_alone=is_alone)
        names = self.table.schema.names
        has_all = clause.side == "source" and clause.sets and not clause.sets[0][0]
        for place, (column, value) in enumerate(clause.sets):
            yield MergeText(value, names[place] if has_all else column, is_alone)

    def _chosen(self, side: Side) -> str:
        """Return the number of the first clause whose condition holds."""
        clauses = self._of(side)
        cases = (f"WHEN {each.condition or 'TRUE'} THEN {n}" for n, each in enumerate(clauses, 1))
        return f"CASE {' '.join(cases)} END" if clauses else _NONE

    def _step(self, number: int, clause: MergeClause) -> MergeStep:
        condition, sets, computed = "", [], []
        for part in self._parts(clause):
            if part.column is None:
                if part in self.terms:
                    condition = self.terms[part]
                elif self._is_paired and clause.side == "both":
                    condition = self._holding(part.text)
            elif part in self.terms:
                computed.append((part.column, self.terms[part]))
            else:
                sets.append((part.column, self._add_value(part.column, part.text)))
        if len(dict([*sets, *computed])) < len(sets) + len(computed):
            raise self.refused("it sets a column twice")
        return MergeStep(number, tuple(sets), condition, tuple(computed))

    def _holding(self, condition: str) -> str:
        """Return the SQL of a condition of the source."""
        name = f"condition {len(self.columns)}"
        self._add(name, _NUMBER, f"CASE WHEN {condition} THEN 1 END")
        return f"{ROW_ALIAS}.{words.of_reader(self.table.reader).quoted(name)} = 1"

    def _add(self, name: str, type_: pa.DataType, value: str) -> None:
        self.columns.append(pa.field(name, type_))
        self.outputs.append(f"{value} AS {_quoted(name)}")

    def _add_value(self, column: str, value: str) -> str:
        """Add a column with values of a column of the table, and return its name."""
        name = f"{len(self.columns)} of {column}"[:_MOST_NAME]
        self._add(name, self.table.schema.field(column).type, value)
        self.own[name] = column
        return name

    def _add_key(self, column: str, value: str) -> None:
        """Add a column that is compared with one of the table."""
        found = next(each for each in self.table.columns if each.name == column)
        writer = words.of_reader(self.table.reader)
        same = writer.sameness(found)
        if same is None or writer.column(found).kind not in _KEY_KINDS:
            raise self.refused(f"its database may compare column '{column}' otherwise")
        self.keys.append(MergeKey(column, self._add_value(column, value), same))

    def _key(self, condition: str, tokens: Sequence[SqlToken]) -> tuple[str, str] | None:
        """Return a column of the target and the value of the source; None: another condition."""
        sides = list(TokenReader(condition, _moved(tokens)).parts("="))
        names = [self._target_column(each.left()) for each in sides]
        if len(sides) != len(("left", "right")) or all(names) or not any(names):
            return None
        column = names[0] or names[1] or ""
        value = sides[1 if names[0] else 0]
        if {each.text.upper() for each in value.left()} & _OTHER_CONDITIONS:
            return None
        text = value.up_to()
        return None if self._reads(text) else (column, text)

    def _target_column(self, tokens: Sequence[SqlToken]) -> str | None:
        """Return the column of the target that tokens name, if they name one and no more."""
        names = [name_of(each) for each in tokens if each.text != "."]
        has_own = self.table.schema.names
        match names:
            case [name] if name in has_own and len(tokens) == 1:
                if name in self.source:
                    raise self.refused(f"column '{name}' is ambiguous")
                return name
            case [qualifier, name] if qualifier == self.statement.target and name in has_own:
                return name
        return None

    def _reads(self, text: str) -> bool:
        """Return whether a text of both may read the target.

        Raises:
            InvalidQueryError: it has a name that is ambiguous.
        """
        tokens = TokenReader.of(text).left()
        is_reading = False
        for place, each in enumerate(tokens):
            if each.kind not in ("word", "name"):
                continue
            before = tokens[place - 1].text if place else ""
            after = tokens[place + 1].text if place + 1 < len(tokens) else ""
            name = name_of(each)
            is_reading |= after == "." and before != "." and name == self.statement.target
            if before != "." and after not in (".", "(") and name in self.table.schema.names:
                if name in self.source:
                    raise self.refused(f"column '{name}' is ambiguous; write the name of its table")
                is_reading = True
        return is_reading


def _moved(tokens: Sequence[SqlToken]) -> list[SqlToken]:
    """Return tokens with places that begin at 0."""
    begin = tokens[0].start if tokens else 0
    return [SqlToken(each.kind, each.text, each.start - begin, each.end - begin) for each in tokens]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def is_merged(spec: TableSpec | None) -> bool:
    """Return whether a plug-in merges rows into the table."""
    written = spec.written if spec is not None else None
    return written is not None and registry.database_reader(written.reader).is_merging
