"""Expressions as SQL: their text, what is known of their type, and how they are joined."""

from collections.abc import Iterable
from dataclasses import dataclass

from substrait.type_pb2 import Type

from caraway_engine.client_plans.refusals import refusal


@dataclass(frozen=True, slots=True)
class PlanTerm:
    """An expression as SQL. `type` is None where the plan does not say it."""

    sql: str
    type: Type | None = None
    is_column: bool = False
    is_atomic: bool = False
    """True if it needs no parentheses as an operand."""
    is_literal: bool = False
    has_window: bool = False
    chain: str = ""
    """The word that joins it, `and` or `or`, if it is such a condition."""

    @property
    def operand(self) -> str:
        """The text as an operand of an operator."""
        return self.sql if self.is_atomic else f"({self.sql})"


def text(value: str) -> str:
    """Return a text as a literal.

    Raises:
        InvalidQueryError: it has a character that SQL texts do not have.
    """
    if "\0" in value:
        raise refusal("a text has the character NUL")
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """Return a name in quotes. Raises the same as `text`."""
    if "\0" in value:
        raise refusal("a name has the character NUL")
    return '"' + value.replace('"', '""') + '"'


def listed(terms: Iterable[PlanTerm]) -> str:
    """Return expressions, separated by commas."""
    return ", ".join(each.sql for each in terms)


def any_window(terms: Iterable[PlanTerm]) -> bool:
    """Return whether a window function is part of one of the expressions."""
    return any(each.has_window for each in terms)
