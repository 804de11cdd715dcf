"""MERGE into tables of databases: the engine computes rows, and the database compares keys.

All values are of the source, so they are computed here, with the number of the clause that takes
each row. The table is only compared with them, by columns whose equality is the engine's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_core.loading import registry
from caraway_core.protocols.remote import ADDED, TAKEN, MergeKey, MergeStep, TableMerge
from caraway_core.sqltext import merge_statements
from caraway_core.sqltext.lexer import SqlToken
from caraway_core.sqltext.merge_statements import MergeClause, MergeStatement
from caraway_core.sqltext.token_reader import TokenReader, name_of
from caraway_core.tables import RemoteTable, TableSpec
from caraway_engine.remote import answers, words
from caraway_engine.remote.writing import InsertingRows, Writing

NOTHING = "no row was changed"
_KEY_KINDS = frozenset({"bool", "int", "uint", "decimal", "text"})
_OTHER_CONDITIONS = frozenset(
    {"OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "SIMILAR", "EXISTS", "<", ">", "<=", ">=",
     "<>", "!=", "~"}
)  # fmt: skip
_NUMBER = pa.int64()


def merging(
    table: RemoteTable, columns: pa.Schema, merge: TableMerge, start: Callable[[], Any]
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
    sql: str, table: RemoteTable, source: Sequence[str], plan: Callable[[str], Any]
) -> tuple[Any, pa.Schema, TableMerge]:
    """Return the rows of a MERGE, their columns, and what becomes of them.

    `source` are the columns of its source, and `plan` plans a query.

    Raises:
        InvalidQueryError: the database may take other rows, or set other values.
    """
    statement = merge_statements.parse(sql)
    made = _Merge(table, statement, frozenset(source))
    text = made.text()
    try:
        frame = plan(text)
    except QueryError:
        raise
    except Exception as exc:
        raise made.refused(
            "its values and conditions are not all of its source, or cannot be planned without it"
        ) from exc
    return frame, pa.schema(made.columns), made.merge()


@dataclass(slots=True)
class _Merge:
    """A MERGE that is taken apart."""

    table: RemoteTable
    statement: MergeStatement
    source: frozenset[str]
    columns: list[pa.Field] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    keys: list[MergeKey] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)
    """The column of the table for each column of the rows."""
    taken: list[MergeStep] = field(default_factory=list)
    added: list[MergeStep] = field(default_factory=list)

    def refused(self, why: str) -> InvalidQueryError:
        return InvalidQueryError(
            f"MERGE into {self.table.title} is not supported: {why}; ON has conditions such as "
            "target.column = source.column, and all other values are those of the source; "
            f"{NOTHING}"
        )

    def text(self) -> str:
        """Return the query of the rows."""
        if self.statement.target in self.source:
            raise self.refused(f"the source has a column '{self.statement.target}', as the target")
        keys = [each for part in self.statement.on if (each := self._key(part)) is not None]
        if not keys:
            raise self.refused("ON compares no column of the target")
        guard = " AND ".join(f"({each})" for each in self.conditions)
        for column, value in keys:
            # A row whose other conditions do not hold is equal to none.
            self._add_key(column, f"CASE WHEN {guard} THEN ({value}) END" if guard else value)
        for is_matched, name, steps in ((True, TAKEN, self.taken), (False, ADDED, self.added)):
            cases = []
            clauses = [each for each in self.statement.clauses if each.is_matched == is_matched]
            for number, clause in enumerate(clauses, start=1):
                cases.append(f"WHEN {self._read(clause.condition) or 'TRUE'} THEN {number}")
                steps.append(self._step(number, clause, name))
            chosen = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS BIGINT)"
            self.columns.append(pa.field(name, _NUMBER))
            self.outputs.append(f"{chosen} AS {_quoted(name)}")
        return f"SELECT {', '.join(self.outputs)} FROM {self.statement.source}"

    def merge(self) -> TableMerge:
        return TableMerge(tuple(self.keys), self.own, tuple(self.taken), tuple(self.added))

    def _step(self, number: int, clause: MergeClause, kind: str) -> MergeStep:
        sets = clause.sets
        if clause.action == "insert" and sets and not sets[0][0]:
            names = self.table.schema.names
            sets = tuple((name, value) for name, (_, value) in zip(names, sets, strict=True))
        pairs = []
        for column, value in sets:
            if clause.is_matched and any(each.column == column for each in self.keys):
                raise self.refused(f"it sets column '{column}', by which rows are found")
            name = f"{column} of {kind} {number}"
            self._add(name, column, self._read(value))
            pairs.append((column, name))
        if len(dict(pairs)) < len(pairs):
            raise self.refused("it sets a column twice")
        return MergeStep(number, tuple(pairs))

    def _add(self, name: str, column: str, value: str) -> None:
        self.columns.append(pa.field(name, self.table.schema.field(column).type))
        self.outputs.append(f"{value} AS {_quoted(name)}")
        self.own[name] = column

    def _add_key(self, column: str, value: str) -> None:
        """Add a column that is compared with one of the table."""
        found = next(each for each in self.table.columns if each.name == column)
        writer = words.of_reader(self.table.reader)
        same = writer.sameness(found)
        if same is None or writer.column(found).kind not in _KEY_KINDS:
            raise self.refused(f"its database may compare column '{column}' otherwise")
        name = f"{column} of ON {len(self.keys)}"
        self._add(name, column, value)
        self.keys.append(MergeKey(column, name, same))

    def _key(self, part: TokenReader) -> tuple[str, str] | None:
        """Return a column of the target and its value; None: a condition of the source.

        Raises:
            InvalidQueryError: it is another condition.
        """
        tokens = part.left()
        condition = part.up_to()
        sides = list(TokenReader(condition, _moved(tokens)).parts("="))
        names = [self._target_column(each.left()) for each in sides]
        if len(sides) == len(("left", "right")) and any(names):
            column = names[0] or names[1] or ""
            value = sides[1 if names[0] else 0]
            others = {each.text.upper() for each in value.left()}
            if all(names) or others & _OTHER_CONDITIONS:
                raise self.refused(f"the condition {condition[:100]} is none of its kind")
            return column, self._read(value.up_to())
        self.conditions.append(self._read(condition))
        return None

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

    def _read(self, text: str) -> str:
        """Return the text of a value of the source.

        Raises:
            InvalidQueryError: it names a column of the target.
        """
        tokens = TokenReader.of(text).left()
        for place, each in enumerate(tokens):
            if each.kind not in ("word", "name"):
                continue
            before = tokens[place - 1].text if place else ""
            after = tokens[place + 1].text if place + 1 < len(tokens) else ""
            name = name_of(each)
            if after == "." and before != "." and name == self.statement.target:
                raise self.refused(f"{text[:100]} reads the target")
            is_plain = before != "." and after not in (".", "(")
            if is_plain and name in self.table.schema.names and name in self.source:
                raise self.refused(f"column '{name}' is ambiguous; write the name of the source")
        return text


def _moved(tokens: Sequence[SqlToken]) -> list[SqlToken]:
    """Return tokens with places that begin at 0."""
    begin = tokens[0].start if tokens else 0
    return [SqlToken(each.kind, each.text, each.start - begin, each.end - begin) for each in tokens]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def is_merged(spec: TableSpec | None) -> bool:
    """Return whether the table is in a database that merges rows."""
    return isinstance(spec, RemoteTable) and registry.database_reader(spec.reader).is_merging
