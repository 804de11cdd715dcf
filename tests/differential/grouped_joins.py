"""Random groupings of LEFT joins, of which some can be grouped before the join.

One number makes the same statement each time, in SQL that DuckDB also understands. The tables are
those of `random_orders`: their keys have NULLs, and values that only one table has.
"""

from random import Random

_TABLES = ("a", "b", "c", "d", "e", "f", "g")
_NUMBERS = ("k", "m", "id")


def statement(number: int) -> str:
    """Return a grouping of rows of one or two tables, and of those that a LEFT join adds."""
    chance = Random(number)
    left, right, third = chance.sample(_TABLES, 3)
    source = left
    sides = [left]
    if chance.random() < 0.1:
        source = f"{left} JOIN {third} ON {left}_m = {third}_id"
        sides.append(third)
    added = _rows(chance, right)
    keys = " AND ".join(_equal(chance, chance.choice(sides), right) for _ in range(_few(chance)))
    if chance.random() < 0.1:
        keys += f" AND {right}_m < {left}_m"
    groups = list(dict.fromkeys(_column(chance, chance.choice(sides)) for _ in range(_few(chance))))
    values = [_aggregate(chance, right) for _ in range(chance.randrange(1, 4))]
    if chance.random() < 0.1:
        values.append(chance.choice(("count(*)", f"count({left}_id)", f"max({left}_k)")))
    columns = ", ".join([*groups, *(f"{each} AS v{at}" for at, each in enumerate(values))])
    where = f" WHERE {left}_id % 3 <> 1" if chance.random() < 0.1 else ""
    having = " HAVING count(*) > 1" if chance.random() < 0.1 else ""
    return (
        f"SELECT {columns} FROM {source} LEFT JOIN {added} ON {keys}{where} "
        f"GROUP BY {', '.join(groups)}{having}"
    )


def _few(chance: Random) -> int:
    return chance.choice((1, 1, 1, 2))


def _rows(chance: Random, name: str) -> str:
    if chance.random() < 0.4:
        return f"(SELECT * FROM {name} WHERE {name}_id % {chance.randrange(2, 5)} <> 0) {name}"
    return name


def _equal(chance: Random, left: str, right: str) -> str:
    sign = "IS NOT DISTINCT FROM" if chance.random() < 0.1 else "="
    if chance.random() < 0.2:
        return f"{left}_w {sign} {right}_w"
    return f"{left}_{chance.choice(_NUMBERS)} {sign} {right}_{chance.choice(_NUMBERS)}"


def _column(chance: Random, name: str) -> str:
    return f"{name}_{chance.choice((*_NUMBERS, 'w'))}"


def _aggregate(chance: Random, name: str) -> str:
    number, column = f"{name}_{chance.choice(_NUMBERS)}", _column(chance, name)
    if chance.random() < 0.15:
        values = (
            f"count(DISTINCT {number})",
            f"sum({number} + 1)",
            f"count({column}) FILTER (WHERE {name}_m > 5)",
        )
        return chance.choice(values)
    return chance.choice(
        (
            f"count({column})",
            f"sum({number})",
            f"CAST(round(avg({number}) * 1000) AS BIGINT)",
            f"min({column})",
            f"max({column})",
            f"bit_xor({number})",
        )
    )
