"""Random joins of two to four tables with NULLs, with subqueries of each kind in WHERE.

One number makes the same statement each time, in SQL that DuckDB also understands. No two columns
have one name, because the engine's plans of statements with such columns stay as they are.
"""

from random import Random

import pyarrow as pa

_COUNTS = {"a": 180, "b": 150, "c": 120, "d": 90, "e": 60, "f": 40, "g": 25}
_KEYS = ("k", "m", "w")
"""Columns with NULLs and with values in common; `w` is a text."""
_NUMBERS = ("k", "m", "id")


def tables() -> dict[str, pa.Table]:
    """Return the tables: a unique `id`, and keys of which some are NULL."""
    chance = Random(134)
    return {name: _table(chance, name, count) for name, count in _COUNTS.items()}


def _table(chance: Random, name: str, count: int) -> pa.Table:
    def numbers(most: int, nulls: float) -> list[int | None]:
        return [None if chance.random() < nulls else chance.randrange(most) for _ in range(count)]

    texts = [None if each is None else f"w{each}" for each in numbers(12, 0.1)]
    columns = {"id": range(count), "k": numbers(30, 0.1), "m": numbers(16, 0.02), "w": texts}
    return pa.table({f"{name}_{column}": values for column, values in columns.items()})


class JoinStatement:
    """Draws one statement."""

    def __init__(self, number: int) -> None:
        self._chance = Random(number)
        names = self._chance.sample(list(_COUNTS), len(_COUNTS))
        count = self._chance.choice((2, 3, 3, 4))
        self._joined, self._others = names[:count], names[count:]

    def sql(self) -> str:
        """Return the text of the statement: counts and sums, so that each row matters."""
        sums = ", ".join(f"sum({each}_id) AS {each}" for each in self._joined)
        joins = self._joins()
        wheres = [self._condition() for _ in range(self._chance.randrange(4))]
        where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
        return f"SELECT count(*) AS n, {sums} FROM {joins}{where}"

    def _joins(self) -> str:
        text, *others = self._joined
        for place, name in enumerate(others, 1):
            how = self._chance.choice(("JOIN", "JOIN", "JOIN", "JOIN", "LEFT JOIN"))
            before = self._joined[:place]
            pairs = [self._equal(self._chance.choice(before), name)]
            if self._chance.random() < 0.3:
                pairs.append(self._equal(self._chance.choice(before), name))
            if self._chance.random() < 0.2:
                pairs.append(f"{name}_m < {self._chance.randrange(16)}")
            text += f" {how} {name} ON {' AND '.join(pairs)}"
        return text

    def _condition(self) -> str:
        name, key = self._chance.choice(self._joined), self._chance.choice(_KEYS)
        other, number = self._other(), self._chance.choice(_NUMBERS)
        column = f"{name}_{key}"
        match self._chance.randrange(7):
            case 0:
                return f"{column} {self._chance.choice(('IN', 'NOT IN'))} ({self._keys(key)})"
            case 1:
                words = self._chance.choice(("EXISTS", "NOT EXISTS"))
                rest = f" AND {other}_id > {self._chance.randrange(30)}"
                if self._chance.random() < 0.3:
                    rest += f" AND {other}_m <> {name}_m"
                return f"{words} (SELECT 1 FROM {other} WHERE {other}_{key} = {column}{rest})"
            case 2:
                function = self._chance.choice(("avg", "min", "max", "count"))
                sign = self._chance.choice(("<", ">=", "<>"))
                return (f"{name}_{number} {sign} (SELECT {function}({other}_{number}) "
                        f"FROM {other} WHERE {other}_{key} = {column})")  # fmt: skip
            case 3:
                return f"{column} IS {self._chance.choice(('', 'NOT '))}NULL"
            case 4:
                sign = self._chance.choice(("=", "<>", "<", ">="))
                return f"{name}_m {sign} {self._chance.choice(self._joined)}_m"
            case 5:
                return f"({column} NOT IN ({self._keys(key)}) OR {name}_m < 7)"
            case _:
                return f"{name}_id < {self._chance.randrange(10, 180)}"

    def _keys(self, key: str) -> str:
        """Return a subquery of keys, which has a NULL in about half of the statements."""
        name = self._other()
        rest = f" WHERE {name}_id < {self._chance.randrange(6, 60)}"
        if self._chance.random() < 0.5:
            rest += f" AND {name}_{key} IS NOT NULL"
        if self._chance.random() < 0.2:
            rest += f" AND {name}_m = {self._chance.choice(self._joined)}_m"
        return f"SELECT {name}_{key} FROM {name}{rest}"

    def _equal(self, one: str, other: str) -> str:
        key = self._chance.choice((*_KEYS, "id"))
        mine = key if key == "w" else self._chance.choice(_NUMBERS)
        return f"{one}_{mine} = {other}_{key}"

    def _other(self) -> str:
        """Return a table that is read once; the last one is read again."""
        return self._others.pop() if len(self._others) > 1 else self._others[0]
