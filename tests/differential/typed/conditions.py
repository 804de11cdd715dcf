"""Conditions and values that may contain subqueries."""

from collections.abc import Sequence

from tests.differential.typed import expressions
from tests.differential.typed.drawing import SCALARS, Column, Draw, Kind

_QUANTIFIED = ("= ANY", "<> ALL", "> ALL", "<= ANY")


def condition(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    """Draw a condition over columns; it may contain subqueries if `depth` is positive."""
    if depth <= 0 or draw.happens(0.6):
        return expressions.condition(draw, columns, 2)
    if draw.happens(0.3):
        word = draw.one(("AND", "OR"))
        return f"({condition(draw, columns, depth - 1)} {word} {_subquery(draw, columns, depth)})"
    return _subquery(draw, columns, depth)


def value(draw: Draw, columns: Sequence[Column], kind: Kind, depth: int) -> str:
    """Draw a value over columns; it may be a subquery if `depth` is positive."""
    if depth <= 0 or draw.happens(0.93) or kind in ("list", "struct"):
        return expressions.of_kind(draw, columns, kind, 2)
    return _scalar(draw, columns, kind, depth)


def _scalar(draw: Draw, columns: Sequence[Column], kind: Kind, depth: int) -> str:
    source, where = _inner(draw, columns, depth)
    if kind == "big" and draw.happens(0.6):
        counted = draw.one(("*", expressions.of_kind(draw, source, draw.one(SCALARS), 1)))
        return f"(SELECT CAST(count({counted}) AS BIGINT){where})"
    if kind == "double" and draw.happens(0.4):
        return f"(SELECT sum({expressions.of_kind(draw, source, kind, 1)}){where})"
    function = draw.one(("min", "max"))
    return f"(SELECT {function}({expressions.of_kind(draw, source, kind, 1)}){where})"


def _inner(draw: Draw, columns: Sequence[Column], depth: int) -> tuple[Sequence[Column], str]:
    source = draw.source(depth - 1)
    where = []
    if draw.happens(0.5):
        where.append(expressions.compared(draw, source.columns, columns, 0))
    if draw.happens(0.4):
        where.append(expressions.condition(draw, source.columns, 1))
    return source.columns, f" FROM {source.sql}" + (
        f" WHERE {' AND '.join(where)}" if where else ""
    )


def _subquery(draw: Draw, columns: Sequence[Column], depth: int) -> str:
    match draw.number(0, 4):
        case 0:
            source, rest = _inner(draw, columns, depth)
            return f"({draw.one(('', 'NOT '))}EXISTS (SELECT 1{rest}))"
        case 1 | 2:
            kind = draw.one(SCALARS)
            operand = expressions.of_kind(draw, columns, kind, 1)
            word = draw.one(("", "NOT "))
            if draw.happens(0.5):
                return f"({operand} {word}IN ({draw.select(depth - 1, [kind]).sql}))"
            source, rest = _inner(draw, columns, depth)
            inner = expressions.of_kind(draw, source, kind, 1)
            return f"({operand} {word}IN (SELECT {inner}{rest}))"
        case 3:
            kind = draw.one(SCALARS)
            operand = expressions.of_kind(draw, columns, kind, 1)
            return f"({operand} {draw.one(('=', '<', '>='))} {_scalar(draw, columns, kind, depth)})"
        case _:
            kind = draw.one(SCALARS[:-4])
            operand = expressions.of_kind(draw, columns, kind, 1)
            inner = draw.select(depth - 1, [kind]).sql
            return f"({operand} {draw.one(_QUANTIFIED)} ({inner}))"
