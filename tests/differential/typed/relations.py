"""Random items of FROM: tables, subqueries, VALUES, joins, and elements of lists."""

from collections.abc import Sequence

from tests.differential.typed import expressions, tables
from tests.differential.typed.drawing import SCALARS, Column, Draw, Relation

_JOINED = ("int", "big", "decimal", "text", "bool", "date", "stamp", "time")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "JOIN", "LEFT JOIN")


def source(draw: Draw, depth: int) -> Relation:
    """Draw a relation with columns that are qualified where that is needed."""
    if depth <= 0 or draw.happens(0.25):
        return _table(draw)
    match draw.number(0, 11):
        case 0 | 1 | 2:
            inner = draw.select(depth - 1)
            return Relation(f"({inner.sql})", inner.columns).named(draw.alias())
        case 10:
            return _joined_by_names(draw)
        case 11:
            return _listed(draw, depth)
        case 3:
            return _rows(draw)
        case 4:
            return _elements(draw)
        case 5 if depth > 1 and draw.happens(0.1):
            return _lateral(draw, depth)
        case _:
            return _join(draw, depth)


def _table(draw: Draw, relations: Sequence[Relation] = ()) -> Relation:
    relation = draw.one(relations or list(tables.RELATIONS.values()))
    columns = tuple(draw.some(relation.columns, 4, len(relation.columns)))
    if not any(each.kind == "list" for each in columns):
        columns += tuple(each for each in relation.columns if each.kind == "list")
    return Relation(relation.sql, columns).named(draw.alias())


def _elements(draw: Draw) -> Relation:
    """Draw the elements of a list, each with other columns of its row."""
    first = _table(draw, tables.NESTED)
    lists = [each.name for each in first.columns if each.kind == "list"]
    others = [each for each in first.columns if each.kind != "list"][:3]
    names = ("x", "y", "n")
    listed = "".join(f", {each.name} AS {name}" for each, name in zip(others, names, strict=False))
    columns = (
        Column("u", "int"),
        *(Column(name, each.kind) for each, name in zip(others, names, strict=False)),
    )
    sql = f"(SELECT unnest({draw.one(lists)}) AS u{listed} FROM {first.sql})"
    return Relation(sql, columns).named(draw.alias())


def _rows(draw: Draw) -> Relation:
    kinds = [draw.one(SCALARS) for _ in range(draw.number(1, 3))]
    rows = []
    for number in range(draw.number(1, 4)):
        values = [
            "NULL"
            if number and draw.happens(0.25)
            else draw.one(expressions.CONSTANTS[kind] or ("NULL",))
            for kind in kinds
        ]
        rows.append(f"({', '.join(values)})")
    names = "xyz"[: len(kinds)]
    alias = draw.alias()
    columns = tuple(
        Column(f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True)
    )
    return Relation(f"(VALUES {', '.join(rows)}) AS {alias}({', '.join(names)})", columns)


def _join(draw: Draw, depth: int) -> Relation:
    first, second = draw.source(depth - 1), draw.source(depth - 1)
    right = f"({second.sql})" if second.is_join else second.sql
    columns = (*first.columns, *second.columns)
    word = draw.one(_JOINS)
    if draw.happens(0.06):
        return Relation(f"{first.sql} CROSS JOIN {right}", columns, is_join=True)
    equal = [
        f"{ours.name} {'IS NOT DISTINCT FROM' if draw.happens(0.15) else '='} {theirs.name}"
        for ours in first.columns for theirs in second.columns if ours.kind == theirs.kind
    ]  # fmt: skip
    on = draw.some(equal, 1, 2) if equal and draw.happens(0.85) else []
    if not on or draw.happens(0.3):
        on.append(expressions.condition(draw, columns, 1))
    return Relation(f"{first.sql} {word} {right} ON {' AND '.join(on)}", columns, is_join=True)


def _joined_by_names(draw: Draw) -> Relation:
    """Draw a join with USING or NATURAL, whose keys are one column."""
    first, second = (draw.one(list(tables.RELATIONS.values())) for _ in range(2))
    ours, theirs = draw.alias(), draw.alias()
    both = [each for each in first.columns if each in second.columns and each.kind in _JOINED]
    keys = draw.some(both, 1, 2)
    others = [each for each in first.columns if each not in keys]
    more = [each for each in second.columns if each not in keys]
    columns = [*keys, *draw.some(others, 1, 2), *draw.some(more, 1, 2)]
    names = draw.some("klmnopqrstuvw", len(columns), len(columns))
    listed = ", ".join(
        f"{'' if each in keys else f'{ours}.' if place < len(columns) - 2 else f'{theirs}.'}"
        f"{each.name} AS {name}"
        for place, (each, name) in enumerate(zip(columns, names, strict=True))
    )
    using = ", ".join(each.name for each in keys)
    sql = (
        f"(SELECT {listed} FROM {first.sql} AS {ours} {draw.one(_JOINS)} {second.sql} AS {theirs} "
        f"USING ({using}))"
    )
    made = tuple(Column(name, each.kind) for each, name in zip(columns, names, strict=True))
    return Relation(sql, made).named(draw.alias())


def _listed(draw: Draw, depth: int) -> Relation:
    """Draw relations with commas between them, joined by the condition of a subquery."""
    first, second = draw.source(depth - 1), draw.source(depth - 1)
    if first.is_join or second.is_join:
        return first
    equal = [
        f"{ours.name} = {theirs.name}"
        for ours in first.columns for theirs in second.columns if ours.kind == theirs.kind
    ]  # fmt: skip
    columns = draw.some((*first.columns, *second.columns), 2, 6)
    names = draw.some("klmnopqrstuvw", len(columns), len(columns))
    listed = ", ".join(f"{each.name} AS {name}" for each, name in zip(columns, names, strict=True))
    conditions = draw.some(equal, 1, 2) or ["true"]
    if draw.happens(0.4):
        conditions.append(expressions.condition(draw, (*first.columns, *second.columns), 1))
    sql = f"(SELECT {listed} FROM {first.sql}, {second.sql} WHERE {' AND '.join(conditions)})"
    made = tuple(Column(name, each.kind) for each, name in zip(columns, names, strict=True))
    return Relation(sql, made).named(draw.alias())


def _lateral(draw: Draw, depth: int) -> Relation:
    first = _table(draw)
    inner = draw.select(min(depth - 1, 1), outer=first.columns)
    second = Relation(f"LATERAL ({inner.sql})", inner.columns).named(draw.alias())
    columns = (*first.columns, *second.columns)
    if draw.happens(0.5):
        return Relation(f"{first.sql} CROSS JOIN {second.sql}", columns, is_join=True)
    return Relation(f"{first.sql} LEFT JOIN {second.sql} ON true", columns, is_join=True)
