"""Random aggregates and window functions with one correct answer."""

from collections.abc import Sequence

from tests.differential.typed.drawing import KINDS, Column, Draw, Kind
from tests.differential.typed.expressions import condition, of_kind

DIRECTIONS = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST")
_TOTAL_FRAMES = (
    "",
    "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "ROWS UNBOUNDED PRECEDING",
)  # fmt: skip
_PEER_FRAMES = (
    "",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", "GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING",
)  # fmt: skip


def aggregate(draw: Draw, columns: Sequence[Column], kind: Kind, *, may_filter: bool = True) -> str:
    """Draw an aggregate that returns a value of the kind."""
    called = _aggregate(draw, columns, kind)
    if may_filter and draw.happens(0.15):
        return f"{called} FILTER (WHERE {condition(draw, columns, 1)})"
    return called


def _aggregate(draw: Draw, columns: Sequence[Column], kind: Kind) -> str:
    distinct = "DISTINCT " if draw.happens(0.2) else ""
    match kind:
        case "big":
            choice = draw.number(0, 3)
            if choice == 0:
                return "count(*)"
            if choice == 1:
                return f"CAST(sum({distinct}{of_kind(draw, columns, 'int', 1)}) AS BIGINT)"
            return f"count({distinct}{of_kind(draw, columns, draw.one(KINDS), 1)})"
        case "int" if draw.happens(0.3):
            function = draw.one(("bit_and", "bit_or", "bit_xor"))
            return f"{function}({of_kind(draw, columns, 'int', 1)})"
        case "double" if draw.happens(0.3):
            first, second = (of_kind(draw, columns, "double", 0) for _ in range(2))
            function = draw.one(("stddev_pop", "var_samp", "median"))
            return draw.one((f"{function}({first})", f"covar_pop({first}, {second})"))
        case "double" if draw.happens(0.6):
            function = draw.one(("avg", "sum"))
            return f"{function}({distinct}{of_kind(draw, columns, 'double', 1)})"
        case "bool" if draw.happens(0.6):
            return f"{draw.one(('bool_and', 'bool_or'))}({of_kind(draw, columns, 'bool', 1)})"
        case "text" if draw.happens(0.4):
            value = of_kind(draw, columns, "text", 1)
            return f"string_agg({distinct}{value}, ',' ORDER BY {value}{draw.one(DIRECTIONS)})"
        case "list":
            value = of_kind(draw, columns, "int", 1)
            order = draw.one((" NULLS FIRST", " DESC NULLS LAST"))
            return f"array_agg({distinct}{value} ORDER BY {value}{order})"
        case "struct":
            return "NULL"
        case _:
            return f"{draw.one(('min', 'max'))}({of_kind(draw, columns, kind, 1)})"


def window(draw: Draw, columns: Sequence[Column], kind: Kind, *, of_rows: bool) -> str:
    """Draw a call of a window function that returns a value of the kind.

    Equal rows have the same value unless it is `of_rows`. Two such calls of one SELECT could pair
    their values in several ways.
    """
    parts = ", ".join(
        of_kind(draw, columns, draw.one(KINDS[:-2]), 1) for _ in range(draw.number(0, 2))
    )
    partition = f"PARTITION BY {parts} " if parts else ""
    sorted_columns = [each.name for each in columns if each.kind not in ("list", "struct")]
    is_total = len(columns) <= 6 and len(sorted_columns) == len(columns)
    if of_rows and is_total and draw.happens(0.8):
        keys = draw.some(sorted_columns, len(sorted_columns), len(sorted_columns))
        order = ", ".join(f"{key}{draw.one(DIRECTIONS)}" for key in keys)
        called = _of_rows(draw, columns, kind)
        frame = (
            draw.one(_TOTAL_FRAMES) if "lag" not in called and "row_number" not in called else ""
        )
        return f"{called} OVER ({partition}ORDER BY {order} {frame})"
    keys = [of_kind(draw, columns, draw.one(KINDS[:-2]), 1) for _ in range(draw.number(0, 2))]
    keys = [
        key
        for key in keys
        if key not in parts and not key.lstrip("(-").startswith(tuple("0123456789"))
    ]
    order = ", ".join(f"{key}{draw.one(DIRECTIONS)}" for key in keys)
    if not order:
        return f"{_plain_aggregate(draw, columns, kind)} OVER ({partition.strip()})"
    if kind == "big" and draw.happens(0.4):
        function = draw.one(("rank", "dense_rank"))
        return f"CAST({function}() OVER ({partition}ORDER BY {order}) AS BIGINT)"
    if kind == "double" and draw.happens(0.3):
        return f"{draw.one(('percent_rank', 'cume_dist'))}() OVER ({partition}ORDER BY {order})"
    frame = draw.one(_PEER_FRAMES)
    return f"{_plain_aggregate(draw, columns, kind)} OVER ({partition}ORDER BY {order} {frame})"


def _plain_aggregate(draw: Draw, columns: Sequence[Column], kind: Kind) -> str:
    match kind:
        case "big":
            return draw.one(("count(*)", f"count({of_kind(draw, columns, draw.one(KINDS), 1)})"))
        case "double":
            return f"sum({of_kind(draw, columns, 'double', 1)})"
        case _:
            return f"{draw.one(('min', 'max'))}({of_kind(draw, columns, kind, 1)})"


def _of_rows(draw: Draw, columns: Sequence[Column], kind: Kind) -> str:
    if kind == "big" and draw.happens(0.5):
        return "row_number()"
    if draw.happens(0.4):
        return _plain_aggregate(draw, columns, kind)
    value = of_kind(draw, columns, kind, 1)
    if draw.happens(0.5):
        return f"{draw.one(('lag', 'lead'))}({value}, {draw.one('12')})"
    return draw.one((f"first_value({value})", f"last_value({value})", f"nth_value({value}, 2)"))
