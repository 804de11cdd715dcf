"""Random MERGEs of databases leave the rows of a model, which does what PostgreSQL does."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from caraway_core.tables import MemoryTable
from tests.conformance.merge_parts import NAMES, Part, Parts, Values, over
from tests.conformance.written_databases import (
    TEXTS,
    InSqlite,
    Kind,
    connector,
    create,
    kind,
    mariadb_server,
    of,
    write,
)
from tests.kit.engine import rows

__all__ = ["connector", "kind", "mariadb_server"]


@dataclass(frozen=True, slots=True)
class Clause:
    side: str
    condition: Part | None
    sets: Mapping[str, Part] | None
    """None: a DELETE."""

    @property
    def sql(self) -> str:
        test = f" AND {self.condition.sql}" if self.condition else ""
        sets = ", ".join(f"{name} = {each.sql}" for name, each in (self.sets or {}).items())
        action = "DELETE" if self.sets is None else f"UPDATE SET {sets}"
        if self.side == "NOT MATCHED":
            values = ", ".join(each.sql for each in (self.sets or {}).values())
            action = f"INSERT ({', '.join(self.sets or ())}) VALUES ({values})"
        return f"WHEN {self.side}{test} THEN {action}"

    def holds(self, t: Values, s: Values) -> bool:
        return self.condition is None or self.condition.of(t, s) is True


BOTH, SOURCE_ONLY, TABLE_ONLY = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"


def _clause(drawn: random.Random, side: str, *, has_doubles: bool) -> Clause:
    if side == SOURCE_ONLY:
        condition = over("s.y > 0", lambda a: a > 0, "s.y") if drawn.random() < 0.5 else None
        values = {"id": over("s.id", int, "s.id"), "n": over("s.y", int, "s.y")}
        return Clause(side, condition, values)
    parts = Parts(drawn, is_alone=side == TABLE_ONLY, has_doubles=has_doubles)
    condition = parts.condition() if drawn.random() < 0.7 else None
    if drawn.random() < 0.3:
        return Clause(side, condition, None)
    names = drawn.sample(NAMES, drawn.randrange(1, 4))
    return Clause(side, condition, {name: parts.value(name) for name in names})


def merged(before: Sequence[Values], given: Sequence[Values], clauses: Sequence[Clause]) -> Any:
    """Return the rows after a MERGE, or None if a row would be changed twice."""
    after: list[Values] = []
    for t in before:
        same = [s for s in given if s["id"] == t["id"] and t["id"] is not None]
        side = BOTH if same else TABLE_ONLY
        taking = [
            (found, s)
            for s in same or [{}]
            if (found := next((c for c in clauses if c.side == side and c.holds(t, s)), None))
        ]
        if len(taking) > 1:
            return None
        if not taking:
            after.append(t)
        elif (sets := taking[0][0].sets) is not None:
            after.append({**t, **{name: each.of(t, taking[0][1]) for name, each in sets.items()}})
    for s in given:
        if any(t["id"] == s["id"] and t["id"] is not None for t in before):
            continue
        found = next((c for c in clauses if c.side == SOURCE_ONLY and c.holds({}, s)), None)
        if found is not None and found.sets is not None:
            made = {name: each.of({}, s) for name, each in found.sets.items()}
            after.append({"id": None, "n": None, "m": None, "v": None, "d": None, **made})
    return after


def _listed(found: Sequence[Values]) -> list[str]:
    return sorted(repr(list(each.values())) for each in found)


def _drawn(
    drawn: random.Random, *, has_doubles: bool
) -> tuple[list[Values], list[Values], list[Clause]]:
    def some(least: int, most: int) -> int | None:
        return None if drawn.random() < 0.2 else drawn.randrange(least, most)

    def text() -> str | None:
        return drawn.choice([None, "a", "b", "A"])

    def double() -> float | None:
        return drawn.choice([None, 0.1, -2.5, 3.0, 1e10, 0.5])

    keys = drawn.sample(range(8), drawn.randrange(6))
    before: list[Values] = [
        {"id": key, "n": some(-5, 6), "m": some(-5, 6), "v": text(), "d": double()} for key in keys
    ]
    given: list[Values] = [
        {"id": key, "y": some(-5, 6), "w": text(), "z": double()}
        for key in drawn.sample(range(10), 5)
    ]
    if given and drawn.random() < 0.15:
        given.append({**given[0], "y": some(-5, 6)})
    sides = [BOTH] * drawn.randrange(4) + [TABLE_ONLY] * drawn.randrange(3)
    sides += [SOURCE_ONLY] * drawn.randrange(2)
    drawn.shuffle(sides)
    return (
        before,
        given,
        [_clause(drawn, side, has_doubles=has_doubles) for side in sides or [BOTH]],
    )


async def check_random(kind: Kind, count: int, seed: int) -> Mapping[str, int]:
    """Compare MERGEs with the model, and return how many were merged, refused and failed."""
    drawn = random.Random(seed)
    text, has_doubles = TEXTS[type(kind).__name__], not isinstance(kind, InSqlite)
    double = "DOUBLE PRECISION"
    create(kind, "t", f"id BIGINT PRIMARY KEY, n INTEGER, m INTEGER, v {text}, d {double}")
    schema = pa.schema({"id": pa.int64(), "y": pa.int32(), "w": pa.string(), "z": pa.float64()})
    tally = {"merged": 0, "twice": 0, "refused": 0}
    for _ in range(count):
        before, given, clauses = _drawn(drawn, has_doubles=has_doubles)
        sql = "MERGE INTO t USING s ON t.id = s.id " + " ".join(each.sql for each in clauses)
        values = ", ".join(
            "({})".format(", ".join("NULL" if v is None else repr(v) for v in each.values()))
            for each in before
        )
        kind.run("DELETE FROM t", *([f"INSERT INTO t VALUES {values}"] if values else []))
        source = pa.Table.from_pylist([dict(each) for each in given], schema=schema)
        session = of(kind, "t", s=MemoryTable(schema, source))
        expected = merged(before, given, clauses)
        key_twice = expected is not None and len({each["id"] for each in expected}) < len(expected)
        try:
            await write(session, sql)
        except QueryError as exc:
            is_refused = "otherwise than this runtime" in exc.message
            assert is_refused or expected is None or key_twice, (
                f"{exc.message}\n{sql}\n{before}\n{given}"
            )
            assert _listed(await rows(session, "SELECT * FROM t")) == _listed(before), sql
            tally["refused" if is_refused else "twice"] += 1
            continue
        found = _listed(await rows(session, "SELECT * FROM t"))
        assert expected is not None and found == _listed(expected), f"{sql}\n{before}\n{given}"
        tally["merged"] += 1
    return tally


def _check(tally: Mapping[str, int]) -> None:
    asked = sum(tally.values())
    assert tally["merged"] > asked * 0.7, tally
    assert tally["twice"] > asked * 0.02, tally


async def test_random_merges_are_those_of_a_model(kind: Kind) -> None:
    _check(await check_random(kind, 75, 7))


@pytest.mark.full
@pytest.mark.timeout(3600)
async def test_many_random_merges_are_those_of_a_model(kind: Kind) -> None:
    _check(await check_random(kind, 5_000, 11))
