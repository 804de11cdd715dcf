"""Reads MERGE statements: the engine checks them, and shows nothing of their clauses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext.token_reader import TokenReader

_VALUES = "INSERT of MERGE needs VALUES (...)"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """A WHEN clause. `sets` are its columns with the texts of their values.

    Without columns, an INSERT has all of them, and those of `sets` are empty.
    """

    is_matched: bool
    condition: str
    action: Literal["update", "delete", "insert"]
    sets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MergeStatement:
    """A MERGE. `target` is the name by which its texts call the table that it changes.

    `source` is the text of the rows, with their name. `on` are the conditions that have to hold
    together: the tokens of each.
    """

    target: str
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
    target = reader.name()[-1]
    if not reader.takes("USING"):
        reader.takes("AS")
        target = reader.written_name()[1]
        reader.needs("USING")
    source = reader.up_to("ON")
    reader.needs("ON")
    on = reader.part("WHEN")
    clauses = tuple(_clauses(reader))
    if not clauses:
        raise InvalidQueryError("MERGE needs WHEN MATCHED or WHEN NOT MATCHED")
    reader.end("MERGE has WHEN clauses")
    return MergeStatement(target, source, tuple(_conjuncts(on)), clauses)


def _conjuncts(on: TokenReader) -> Iterator[TokenReader]:
    """Yield the conditions that have to hold together; one in parentheses is taken apart, too."""
    tokens = on.left()
    inner = TokenReader("", tokens)
    if tokens and tokens[0].text == "(":
        inner.takes("(")
        inner.part(")")
        if inner.takes(")") and not inner.has_more:
            yield from _conjuncts(on.inside())
            return
    yield from on.parts("AND")


def _clauses(reader: TokenReader) -> Iterator[MergeClause]:
    while reader.takes("WHEN"):
        is_matched = not reader.takes("NOT")
        reader.needs("MATCHED")
        if not is_matched and reader.takes("BY", "SOURCE"):
            raise InvalidQueryError(
                "WHEN NOT MATCHED BY SOURCE is not supported; write a DELETE or UPDATE"
            )
        reader.takes("BY", "TARGET")
        condition = reader.up_to("THEN") if reader.takes("AND") else ""
        reader.needs("THEN")
        yield _clause(reader.part("WHEN"), is_matched, condition)


def _clause(action: TokenReader, is_matched: bool, condition: str) -> MergeClause:
    if action.takes("DELETE"):
        action.end("DELETE of MERGE takes nothing")
        return MergeClause(is_matched, condition, "delete")
    if action.takes("UPDATE", "SET"):
        return MergeClause(is_matched, condition, "update", tuple(_sets(action)))
    action.needs("INSERT")
    columns = []
    if action.word() == "(":
        columns = [each.name()[-1] for each in action.listed(_VALUES)]
    action.needs("VALUES")
    values = [each.up_to() for each in action.listed(_VALUES)]
    action.end(_VALUES)
    columns = columns or [""] * len(values)
    return MergeClause(is_matched, condition, "insert", tuple(zip(columns, values, strict=True)))


def _sets(action: TokenReader) -> Iterator[tuple[str, str]]:
    for each in action.parts(","):
        column = each.name()[-1]
        each.needs("=")
        yield column, each.up_to()
