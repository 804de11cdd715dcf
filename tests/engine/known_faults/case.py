"""The definition of a case of a known fault."""

from dataclasses import dataclass

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A statement that shows a fault. `right` are its rows in any order, if it is answered.

    Otherwise `refusal` is a part of what the error says.
    """

    fault: str
    sql: str
    right: tuple[Row, ...] | None = None
    refusal: str = ""


def answered(fault: str, sql: str, *right: Row) -> Case:
    return Case(fault, sql, right)


def refused(fault: str, sql: str, refusal: str) -> Case:
    return Case(fault, sql, refusal=refusal)
