"""Random statements: a SELECT, its common table expressions, and its order."""

from dataclasses import dataclass

from tests.differential.typed import aggregates, relations, selects
from tests.differential.typed.drawing import Draw, Grammar

_GRAMMAR = Grammar(selects.select, relations.source)


@dataclass(frozen=True, slots=True)
class Typed:
    """A statement, and the places of the columns by which it sorts."""

    sql: str
    places: tuple[int, ...] = ()


def statement(seed: int) -> Typed:
    """Return the statement of a seed."""
    draw = Draw(seed, _GRAMMAR)
    depth = draw.number(0, 3)
    chosen = draw.select(depth)
    sql = chosen.sql
    if draw.happens(0.15):
        name = draw.alias()
        sql = f"WITH {name} AS ({sql}) SELECT * FROM {name}"
        if draw.happens(0.4):
            sql += f" UNION ALL SELECT * FROM {name}"
    elif draw.happens(0.3):
        sql = f"SELECT * FROM ({sql}) AS {draw.alias()}"
    places = [n for n, column in enumerate(chosen.columns) if column.kind not in ("list", "struct")]
    if draw.happens(0.4) or not places:
        return Typed(sql)
    if len(places) == len(chosen.columns) and draw.happens(0.5):
        keys = draw.some(places, len(places), len(places))
        limit = f" LIMIT {draw.number(0, 10)}{draw.one(('', '', ' OFFSET 2'))}"
    else:
        keys, limit = draw.some(places, 1, 2), ""
    order = ", ".join(
        f"{chosen.columns[key].name}{draw.one(aggregates.DIRECTIONS)}" for key in keys
    )
    return Typed(f"SELECT * FROM ({sql}) AS {draw.alias()} ORDER BY {order}{limit}", tuple(keys))
