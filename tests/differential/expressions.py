"""Random expressions over typed columns. None fails on any row, in any evaluation order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Kind = Literal["int", "float", "decimal", "text", "date", "bool", "inexact"]
"""`inexact` floats depend on the order of addition: they are selected, but nothing depends on them.
"""

KINDS: tuple[Kind, ...] = ("int", "float", "decimal", "text", "date", "bool")
NUMBERS: tuple[Kind, ...] = ("int", "float", "decimal")

_LITERALS: dict[Kind, tuple[str, ...]] = {
    "int": ("0", "1", "2", "7", "50", "-3"),
    "float": ("0.5", "10.25", "64.0"),
    "decimal": ("CAST('12.50' AS DECIMAL(10, 2))", "CAST('5000.00' AS DECIMAL(10, 2))"),
    "text": ("'a'", "'b'", "'Eve'", "''", "'h'"),
    "date": ("DATE '2020-06-01'", "DATE '2019-01-03'"),
    "bool": ("true", "false"),
}
_SHAPES: dict[Kind, tuple[str, ...]] = {
    "int": ("{0} + 1", "{0} % 5", "abs({0})", "coalesce({0}, 0)", "{0} - 10",
            "CASE WHEN {0} > 3 THEN {0} END", "nullif({0}, 2)"),
    "float": ("{0} + 0.5", "{0} / 2", "coalesce({0}, 1.5)", "greatest({0}, 4.0)"),
    "decimal": ("{0} + 1", "coalesce({0}, 0)", "abs({0})", "nullif({0}, 0)"),
    "text": ("upper({0})", "{0} || 'x'", "coalesce({0}, '?')", "substr({0}, 1, 1)",
             "nullif({0}, 'a')"),
    "date": ("coalesce({0}, DATE '2021-01-01')", "{0} + INTERVAL '40 days'"),
    "bool": ("NOT {0}", "{0} IS TRUE", "coalesce({0}, false)", "{0} IS NULL"),
}  # fmt: skip

# The parser reads `x IS DISTINCT FROM y AND z` as `x IS DISTINCT FROM (y AND z)`.
_COMPARISONS = ("{0} {op} {1}", "{0} IS NULL", "{0} IS NOT NULL", "{0} NOT IN ({1}, {2})",
                "({0} IS DISTINCT FROM {1})")  # fmt: skip
# With a literal, these make a column constant. DataFusion 55 then treats it as constant even above
# an outer join, where it can be NULL, and drops it from ORDER BY.
_EQUALITIES = ("{0} = {1}", "{0} IN ({1}, {2})", "({0} IS NOT DISTINCT FROM {1})")


@dataclass(frozen=True, slots=True)
class Column:
    """A column, with the name by which expressions refer to it."""

    name: str
    kind: Kind

    @property
    def is_exact(self) -> bool:
        return self.kind != "inexact"


def exact(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.is_exact]


def of_kind(columns: Sequence[Column], *kinds: Kind) -> list[Column]:
    return [column for column in columns if column.kind in kinds]


@st.composite
def expression(draw: DrawFn, columns: Sequence[Column]) -> Column:
    """Draw an expression; the name of the returned column is its text."""
    column = draw(st.sampled_from(list(columns)))
    shapes = _SHAPES.get(column.kind, ())
    if not shapes or draw(st.booleans()):
        return column
    text = draw(st.sampled_from(shapes)).format(column.name)
    if text.endswith("INTERVAL '40 days'"):
        text = f"CAST({text} AS DATE)"
    return Column(f"({text})", column.kind)


@st.composite
def condition(draw: DrawFn, columns: Sequence[Column], depth: int = 2) -> str:
    """Draw a condition in three-valued logic over exact columns."""
    usable = exact(columns)
    if not usable:
        return draw(st.sampled_from(("true", "1 = 1", "NULL IS NULL")))
    if depth and draw(st.integers(0, 3)) == 0:
        left, right = (draw(condition(usable, depth - 1)) for _ in range(2))
        return f"({left} {draw(st.sampled_from(('AND', 'OR')))} {right})"
    if depth and draw(st.integers(0, 7)) == 0:
        return f"NOT ({draw(condition(usable, depth - 1))})"
    return draw(_comparison(usable))


@st.composite
def _comparison(draw: DrawFn, columns: Sequence[Column]) -> str:
    left = draw(expression(columns))
    right, other = (draw(_operand(columns, left.kind)) for _ in range(2))
    shapes = [*_COMPARISONS]
    if right.is_column and other.is_column:
        shapes += _EQUALITIES
    if left.kind != "bool":
        shapes += ["{0} BETWEEN {1} AND {2}", "{0} {op} {1}", "{0} {op} {1}"]
    if left.kind == "text":
        shapes += ["{0} LIKE '%a%'", "{0} NOT LIKE '_'"]
    operator = draw(st.sampled_from(("<>", "<>", "<", "<=", ">", ">=")))
    shape = draw(st.sampled_from(shapes))
    return shape.format(left.name, right.text, other.text, op=operator)


@dataclass(frozen=True, slots=True)
class _Operand:
    text: str
    is_column: bool


@st.composite
def _operand(draw: DrawFn, columns: Sequence[Column], kind: Kind) -> _Operand:
    is_column = draw(st.booleans())
    if is_column and (same := of_kind(columns, kind)):
        return _Operand(draw(st.sampled_from(same)).name, True)
    return _Operand(draw(st.sampled_from((*_LITERALS[kind], "NULL"))), False)
