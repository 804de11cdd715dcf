"""Random SELECTs; each contains smaller ones."""

from collections.abc import Sequence

from tests.differential.typed import aggregates, conditions, expressions
from tests.differential.typed.drawing import KINDS, SCALARS, Column, Draw, Kind, Select
from tests.differential.typed.expressions import of_kind

_NAMES = ("i", "l", "d", "f", "s", "v", "p", "t", "m", "k", "n", "x", "y")


def select(
    draw: Draw, depth: int, kinds: Sequence[Kind] | None = None, outer: Sequence[Column] = ()
) -> Select:
    """Draw a SELECT, of columns of these kinds if any are given.

    Its condition may compare with columns of the statement around it.
    """
    wanted = tuple(
        kinds
        or (draw.one(KINDS if draw.happens(0.1) else SCALARS) for _ in range(draw.number(1, 4)))
    )
    if depth > 0 and not outer and draw.happens(0.18):
        return _of_sets(draw, depth - 1, wanted)
    if depth > 0 and not outer and draw.happens(0.1):
        return _limited(draw, depth - 1, wanted)
    if depth > 0 and not outer and draw.happens(0.1):
        return draw.one((_with, _with, _recursive))(draw, depth - 1, wanted)
    if not outer and draw.happens(0.06):
        return _first_of_each(draw, depth, wanted)
    make = draw.one((_plain, _plain, _grouped, _grouped, _windowed, _single))
    return make(draw, depth, wanted, outer)


def _list(draw: Draw, values: Sequence[str], kinds: Sequence[Kind]) -> Select:
    names = draw.some(_NAMES, len(values), len(values))
    listed = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
    return Select(listed, tuple(map(Column, names, kinds)))


def _where(draw: Draw, depth: int, columns: Sequence[Column], outer: Sequence[Column]) -> str:
    found = []
    if outer and draw.happens(0.8):
        found.append(expressions.compared(draw, columns, outer, 0))
    if draw.happens(0.5):
        found.append(conditions.condition(draw, columns, depth))
    return f" WHERE {' AND '.join(found)}" if found else ""


def _plain(draw: Draw, depth: int, kinds: Sequence[Kind], outer: Sequence[Column]) -> Select:
    source = draw.source(depth)
    values = [conditions.value(draw, source.columns, kind, depth) for kind in kinds]
    listed = _list(draw, values, kinds)
    distinct = "DISTINCT " if draw.happens(0.2) else ""
    where = _where(draw, depth, source.columns, outer)
    return Select(f"SELECT {distinct}{listed.sql} FROM {source.sql}{where}", listed.columns)


def _single(draw: Draw, depth: int, kinds: Sequence[Kind], outer: Sequence[Column]) -> Select:
    source = draw.source(depth)
    values = [aggregates.aggregate(draw, source.columns, kind) for kind in kinds]
    listed = _list(draw, values, kinds)
    where = _where(draw, depth, source.columns, outer)
    having = f" HAVING {expressions.condition(draw, [], 0)}" if draw.happens(0.05) else ""
    return Select(f"SELECT {listed.sql} FROM {source.sql}{where}{having}", listed.columns)


def _grouped(draw: Draw, depth: int, kinds: Sequence[Kind], outer: Sequence[Column]) -> Select:
    source = draw.source(depth)
    where = _where(draw, depth, source.columns, outer)
    key_kinds = [kind for kind in kinds if draw.happens(0.6)]
    keys = [Column(of_kind(draw, source.columns, kind, 1), kind) for kind in key_kinds]
    keys = [key for key in keys if any(each.name in key.name for each in source.columns)]
    keys += [draw.one(source.columns)] if not keys or draw.happens(0.2) else []
    values = []
    for kind in kinds:
        same = [key.name for key in keys if key.kind == kind]
        if same and draw.happens(0.6):
            values.append(draw.one(same))
        elif draw.happens(0.12):
            values.append(_over_groups(draw, source.columns, keys, kind))
        else:
            values.append(aggregates.aggregate(draw, source.columns, kind))
    listed = _list(draw, values, kinds)
    having = ""
    if draw.happens(0.25):
        kind = draw.one(SCALARS)
        made = [Column(aggregates.aggregate(draw, source.columns, kind, may_filter=False), kind)]
        having = f" HAVING {expressions.condition(draw, [*keys, *made], 1)}"
    distinct = "DISTINCT " if draw.happens(0.1) else ""
    by = _group_by(draw, list(dict.fromkeys(key.name for key in keys)))
    sql = f"SELECT {distinct}{listed.sql} FROM {source.sql}{where} GROUP BY {by}{having}"
    return Select(sql, listed.columns)


def _over_groups(draw: Draw, columns: Sequence[Column], keys: Sequence[Column], kind: Kind) -> str:
    inner = aggregates.aggregate(draw, columns, kind, may_filter=False)
    parts = [key.name for key in keys if key.kind != "struct" and draw.happens(0.5)]
    partition = f"PARTITION BY {', '.join(parts)}" if parts else ""
    if kind in ("list", "struct"):
        return inner
    return f"{draw.one(('min', 'max'))}({inner}) OVER ({partition})"


def _group_by(draw: Draw, keys: Sequence[str]) -> str:
    match draw.number(0, 9):
        case 0:
            return f"ROLLUP ({', '.join(keys)})"
        case 1 if len(keys) <= 3:
            return f"CUBE ({', '.join(keys)})"
        case 2:
            sets = [draw.some(keys, 0, len(keys)) for _ in range(draw.number(1, 3))]
            if set(keys) == {key for each in sets for key in each}:
                return f"GROUPING SETS ({', '.join('(' + ', '.join(each) + ')' for each in sets)})"
    return ", ".join(keys)


def _windowed(draw: Draw, depth: int, kinds: Sequence[Kind], outer: Sequence[Column]) -> Select:
    source = draw.source(depth)
    where = _where(draw, depth, source.columns, outer)
    of_rows = draw.number(0, len(kinds))
    values = [
        aggregates.window(draw, source.columns, kind, of_rows=place == of_rows)
        if draw.happens(0.5) and kind not in ("list", "struct")
        else of_kind(draw, source.columns, kind, 1)
        for place, kind in enumerate(kinds)
    ]
    listed = _list(draw, values, kinds)
    qualify = ""
    if draw.happens(0.2):
        kind: Kind = draw.one(("big", "double", "int"))
        value = aggregates.window(draw, source.columns, kind, of_rows=of_rows == len(kinds))
        word = draw.one(("=", "<>", "<=", ">", "IS DISTINCT FROM"))
        qualify = f" QUALIFY {value} {word} {of_kind(draw, source.columns, kind, 0)}"
    return Select(f"SELECT {listed.sql} FROM {source.sql}{where}{qualify}", listed.columns)


def _with(draw: Draw, depth: int, kinds: Sequence[Kind]) -> Select:
    """Draw a common table expression that is read once or twice, and may have a table's name."""
    inner = draw.select(depth)
    name = draw.one(("a", "b", "q", draw.alias()))
    ours, theirs = draw.alias(), draw.alias()
    columns = tuple(Column(f"{ours}.{each.name}", each.kind) for each in inner.columns)
    source = f"{name} AS {ours}"
    if draw.happens(0.5):
        word = draw.one(("JOIN", "LEFT JOIN", "FULL JOIN"))
        key = draw.one(inner.columns).name
        source += f" {word} {name} AS {theirs} ON {ours}.{key} = {theirs}.{key}"
        columns += tuple(Column(f"{theirs}.{each.name}", each.kind) for each in inner.columns)
    values = [of_kind(draw, columns, kind, 1) for kind in kinds]
    listed = _list(draw, values, kinds)
    where = f" WHERE {expressions.condition(draw, columns, 1)}" if draw.happens(0.4) else ""
    sql = f"WITH {name} AS ({inner.sql}) SELECT {listed.sql} FROM {source}{where}"
    return Select(f"SELECT * FROM ({sql}) AS {draw.alias()}", listed.columns)


def _recursive(draw: Draw, depth: int, kinds: Sequence[Kind]) -> Select:
    """Draw a common table expression that reads itself three times."""
    inner = draw.select(depth, ["int", *kinds])
    name, alias = draw.alias(), draw.alias()
    number, *others = inner.columns
    columns = [Column(f"{alias}.{each.name}", each.kind) for each in inner.columns]
    values = [of_kind(draw, columns, each.kind, draw.number(0, 1)) for each in others]
    where = f"{alias}.depth < 2"
    if draw.happens(0.5):
        where += f" AND {expressions.condition(draw, columns, 1)}"
    listed = "".join(f", {value}" for value in values)
    first = "".join(f", {each.name}" for each in others)
    names = "".join(f", {each.name}" for each in others)
    word = draw.one(("UNION ALL", "UNION ALL", "UNION"))
    sql = (
        f"WITH RECURSIVE {name}(depth, {number.name}{names}) AS ("
        f"SELECT 0, {number.name}{first} FROM ({inner.sql}) AS {draw.alias()} {word} "
        f"SELECT {alias}.depth + 1, {alias}.{number.name}{listed} FROM {name} AS {alias} "
        f"WHERE {where}) SELECT {first[2:]} FROM {name}"
    )
    return Select(f"SELECT * FROM ({sql}) AS {draw.alias()}", tuple(others))


def _first_of_each(draw: Draw, depth: int, kinds: Sequence[Kind]) -> Select:
    """Draw DISTINCT ON over an order of all columns."""
    inner = draw.select(max(depth - 1, 0), [*kinds, draw.one(SCALARS[:-1])])
    if any(each.kind in ("list", "struct") for each in inner.columns):
        return Select(inner.sql, inner.columns)
    names = [each.name for each in inner.columns]
    keys = draw.some(names, len(names), len(names))
    order = ", ".join(f"{key}{draw.one(aggregates.DIRECTIONS)}" for key in keys)
    on = ", ".join(keys[: draw.number(1, len(keys))])
    listed = ", ".join(names[: len(kinds)])
    sql = (
        f"SELECT DISTINCT ON ({on}) {listed} FROM ({inner.sql}) AS {draw.alias()} ORDER BY {order}"
    )
    return Select(f"SELECT * FROM ({sql}) AS {draw.alias()}", inner.columns[: len(kinds)])


def _of_sets(draw: Draw, depth: int, kinds: Sequence[Kind]) -> Select:
    first = draw.select(depth, kinds)
    sql = first.sql
    for _ in range(draw.number(1, 2)):
        word = draw.one(("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "UNION ALL"))
        sql = f"SELECT * FROM (({sql}) {word} ({draw.select(depth, kinds).sql})) AS {draw.alias()}"
    return Select(sql, first.columns)


def _limited(draw: Draw, depth: int, kinds: Sequence[Kind]) -> Select:
    inner = draw.select(depth, kinds)
    if any(each.kind in ("list", "struct") for each in inner.columns):
        return inner
    names = [each.name for each in inner.columns]
    keys = ", ".join(
        f"{name}{draw.one(aggregates.DIRECTIONS)}"
        for name in draw.some(names, len(names), len(names))
    )
    offset = f" OFFSET {draw.number(1, 3)}" if draw.happens(0.3) else ""
    limit = f"LIMIT {draw.number(0, 8)}{offset}"
    sql = f"SELECT * FROM ({inner.sql}) AS {draw.alias()} ORDER BY {keys} {limit}"
    return Select(sql, inner.columns)
