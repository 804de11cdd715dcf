"""Reads MERGE statements: the engine checks them, and shows nothing of their clauses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext.token_reader import TokenReader

Side = Literal["both", "source", "table"]
_VALUES = "INSERT of MERGE needs VALUES (...)"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """A WHEN clause. `sets` are its columns with the texts of their values.

    `side` says where its rows are: in both the table and the source, or in one of them alone.
    Without columns, an INSERT has all of them, and those of `sets` are empty.
    """

    side: Side
    condition: str
    action: Literal["update", "delete", "insert"]
    sets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MergeStatement:
    """A MERGE. `target` is the name by which its texts call the table that it changes.

    `table` is the text of that table, and `source` the one of the rows, both with their name. `on`
    are the conditions that have to hold together: the tokens of each.
    """

    target: str
    table: str
    source: str
    on: tuple[TokenReader, ...]
    clauses: tuple[MergeClause, ...]


def parse(sql: str) -> MergeStatement:
    """Return what a MERGE says, which the engine has planned.

    Raises:
        InvalidQueryError: it has parts that are not supported.
    """
    reader = TokenReader.of(sql)
    reader.needs("MERGE")
    reader.takes("INTO")
    written = reader.up_to("USING")
    reader.needs("USING")
    table = TokenReader.of(written)
    target = table.name()[-1]
    if table.has_more:
        table.takes("AS")
        target = table.written_name()[1]
    table.end("MERGE has one name for its table")
    source = reader.up_to("ON")
    reader.needs("ON")
    on = reader.up_to("WHEN")
    clauses = tuple(_clauses(reader))
    if not clauses:
        raise InvalidQueryError("MERGE needs WHEN MATCHED or WHEN NOT MATCHED")
    reader.end("MERGE has WHEN clauses")
    return MergeStatement(target, written, source, tuple(_conjuncts(on)), clauses)


def _conjuncts(on: str) -> Iterator[TokenReader]:
    """Yield the conditions that have to hold together; one in parentheses is taken apart, too."""
    tokens = TokenReader.of(on)
    if tokens.word() == "(":
        tokens.takes("(")
        tokens.part(")")
        if tokens.takes(")") and not tokens.has_more:
            yield from _conjuncts(TokenReader.of(on).inside().up_to())
            return
    either = TokenReader.of(on)
    either.part("OR")
    if either.has_more:
        yield TokenReader.of(on)
    else:
        yield from TokenReader.of(on).parts("AND")


def _clauses(reader: TokenReader) -> Iterator[MergeClause]:
    while reader.takes("WHEN"):
        side: Side = "source" if reader.takes("NOT") else "both"
        reader.needs("MATCHED")
        if side == "source":
            if reader.takes("BY", "SOURCE"):
                side = "table"
            reader.takes("BY", "TARGET")
        condition = reader.up_to("THEN") if reader.takes("AND") else ""
        reader.needs("THEN")
        yield _clause(reader.part("WHEN"), side, condition)


def _clause(action: TokenReader, side: Side, condition: str) -> MergeClause:
    if side == "source":
        return _insert(action, condition)
    if action.takes("DELETE"):
        action.end("DELETE of MERGE takes nothing")
        return MergeClause(side, condition, "delete")
    action.needs("UPDATE", "SET")
    return MergeClause(side, condition, "update", tuple(_sets(action)))


def _insert(action: TokenReader, condition: str) -> MergeClause:
    action.needs("INSERT")
    columns = []
    if action.word() == "(":
        columns = [each.name()[-1] for each in action.listed(_VALUES)]
    action.needs("VALUES")
    values = [each.up_to() for each in action.listed(_VALUES)]
    action.end(_VALUES)
    columns = columns or [""] * len(values)
    return MergeClause("source", condition, "insert", tuple(zip(columns, values, strict=True)))


def _sets(action: TokenReader) -> Iterator[tuple[str, str]]:
    for each in action.parts(","):
        column = each.name()[-1]
        each.needs("=")
        yield column, each.up_to()
