"""Random functions of keys and conditions over them, strict or not, over NULL and values."""

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.differential.expressions import Column, Kind, exact, of_kind

LITERALS: dict[Kind, tuple[str, ...]] = {
    "int": ("0", "1", "3", "7", "-2"),
    "float": ("0.5", "1.0", "2.0"),
    "decimal": ("CAST('0.50' AS DECIMAL(10, 2))", "CAST('1.00' AS DECIMAL(10, 2))"),
    "text": ("'a'", "'B'", "'ab'", "''", "'KEY-5'", "'5'"),
    "date": ("DATE '2024-01-02'", "DATE '2024-02-01'"),
}
_SAME: dict[Kind, tuple[str, ...]] = {
    "int": ("{0} + 1", "{0} % 3", "abs({0})", "coalesce({0}, 0)", "nullif({0}, 2)",
            "CAST({0} AS BIGINT)", "CASE WHEN {0} > 3 THEN {0} ELSE 0 END"),
    "float": ("{0} + 0.5", "abs({0})", "coalesce({0}, 1.0)", "nullif({0}, 0.5)"),
    "decimal": ("{0} + 1", "abs({0})", "coalesce({0}, 0)", "nullif({0}, 1)"),
    "text": ("upper({0})", "lower({0})", "coalesce({0}, 'a')", "substr({0}, 1, 1)",
             "concat({0}, 'x')", "nullif({0}, 'a')", "CASE WHEN {0} > 'a' THEN {0} ELSE 'b' END",
             "CASE WHEN {0} IS NULL THEN 'a' ELSE {0} END"),
    "date": ("coalesce({0}, DATE '2024-01-01')", "nullif({0}, DATE '2024-01-02')",
             "CAST(date_trunc('month', {0}) AS DATE)"),
}  # fmt: skip
_OTHER: dict[Kind, tuple[tuple[str, Kind], ...]] = {
    "int": (("CAST({0} AS VARCHAR)", "text"), ("CAST({0} AS DECIMAL(10, 2))", "decimal"),
            ("CAST({0} AS DOUBLE)", "float")),
    "float": (("coalesce({0}, 0.0)", "float"),),
    "decimal": (("CAST({0} AS DOUBLE)", "float"),),
    "text": (("length({0})", "int"), ("CASE WHEN {0} LIKE 'a%' THEN 1 ELSE 0 END", "int")),
    "date": (("CAST(date_part('day', {0}) AS BIGINT)", "int"),),
}  # fmt: skip
_CONDITIONS = ("{0} {op} {1}", "{0} {op} {1}", "{0} {op} {1}", "{0} IS NULL", "{0} IS NOT NULL",
               "({0} IS DISTINCT FROM {1})", "{0} IN ({1}, {2})", "{0} NOT IN ({1}, {2})",
               "{0} BETWEEN {1} AND {2}", "({0} {op} {1} OR {2} IS NULL)",
               "NOT ({0} {op} {1} AND {0} {op} {2})", "({0} {op} {1}) IS NOT TRUE")  # fmt: skip


@st.composite
def key(draw: DrawFn, column: Column) -> str:
    """Draw a column or a function of it, of the same kind."""
    if draw(st.booleans()):
        return column.name
    return draw(st.sampled_from(_SAME[column.kind])).format(column.name)


@st.composite
def expression(draw: DrawFn, columns: Sequence[Column]) -> Column:
    """Draw an expression over one or two columns; its text is the name."""
    column = draw(st.sampled_from(exact(columns)))
    shape = draw(st.integers(0, 5))
    if shape < 2:
        return column
    if shape == 2:
        text, kind = draw(st.sampled_from(_OTHER[column.kind]))
        return Column(text.format(column.name), kind)
    if shape == 3:
        other = draw(st.sampled_from(of_kind(columns, column.kind)))
        return Column(f"coalesce({draw(key(column))}, {other.name})", column.kind)
    return Column(draw(key(column)), column.kind)


@st.composite
def condition(draw: DrawFn, columns: Sequence[Column]) -> str:
    left = draw(expression(columns))
    operands = [draw(_operand(columns, left.kind)) for _ in range(2)]
    operator = draw(st.sampled_from(("=", "<>", "<", "<=", ">", ">=")))
    return draw(st.sampled_from(_CONDITIONS)).format(left.name, *operands, op=operator)


@st.composite
def _operand(draw: DrawFn, columns: Sequence[Column], kind: Kind) -> str:
    same = of_kind(columns, kind)
    if same and draw(st.integers(0, 2)) == 0:
        return draw(key(draw(st.sampled_from(same))))
    return draw(st.sampled_from(LITERALS[kind]))
