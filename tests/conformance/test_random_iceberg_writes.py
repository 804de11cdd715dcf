"""Random UPDATEs, DELETEs and MERGEs of Iceberg tables leave the rows that DuckDB has then."""

import random
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from caraway_core.tables import MemoryTable
from caraway_engine.sessions.sessions import Session
from caraway_plugins.sources.iceberg.source import IcebergSource
from tests.conformance.written_databases import write
from tests.kit.engine import rows, session
from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import Written

SCHEMA = pa.schema(
    {"id": pa.int64(), "n": pa.int64(), "f": pa.float64(), "v": pa.string(), "d": pa.date32()}
)
SOURCE = pa.schema({"k": pa.int64(), "y": pa.int64(), "w": pa.string()})
TEXTS = ["a", "b", "A", "ab", "", "ü"]


class Statements:
    """Draws statements that both engines take alike."""

    def __init__(self, drawn: random.Random) -> None:
        self._drawn = drawn

    def table(self, count: int) -> pa.Table:
        drawn = self._drawn
        return pa.Table.from_pylist(
            [
                {
                    "id": drawn.choice([None, *range(8)]),
                    "n": drawn.choice([None, *range(-3, 4)]),
                    "f": drawn.choice([None, 0.5, -2.25, 1e10]),
                    "v": drawn.choice([None, *TEXTS]),
                    "d": drawn.choice([None, "2020-01-01", "1969-12-31"]),
                }
                for _ in range(count)
            ],
            pa.schema([*SCHEMA.remove(4), pa.field("d", pa.string())]),
        ).cast(SCHEMA)

    def source(self) -> pa.Table:
        drawn = self._drawn
        keys = drawn.sample(range(10), drawn.randrange(6))
        if keys and drawn.random() < 0.4:
            keys.append(keys[0])
        return pa.Table.from_pylist(
            [
                {"k": key, "y": drawn.choice([None, *range(-3, 4)]), "w": drawn.choice(TEXTS)}
                for key in [*keys, None][: drawn.randrange(1, 8)]
            ],
            SOURCE,
        )

    def change(self) -> str:
        condition = self.condition("t")
        if self._drawn.random() < 0.3:
            condition = f"{self._subquery()} AND {condition}"
        where = f" WHERE {condition}" if self._drawn.random() < 0.9 else ""
        if self._drawn.random() < 0.4:
            return f"DELETE FROM t{where}"
        return f"UPDATE t SET {self.sets('t')}{where}"

    def merge(self) -> str:
        drawn = self._drawn
        clauses = []
        sides = drawn.choices(["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"], k=3)
        sides = sides[: drawn.randrange(1, 4)]
        for place, side in enumerate(sides):
            names = {"MATCHED": "ts", "NOT MATCHED": "s"}.get(side, "t")
            is_last = side not in sides[place + 1 :]
            test = "" if is_last and drawn.random() < 0.5 else f" AND {self.condition(names)}"
            if side == "NOT MATCHED":
                action = f"INSERT (id, n, v) VALUES (s.k, {self.number(names)}, {self.text(names)})"
            elif drawn.random() < 0.35:
                action = "DELETE"
            else:
                action = f"UPDATE SET {self.sets(names)}"
            clauses.append(f"WHEN {side}{test} THEN {action}")
        on = drawn.choice(["t.id = s.k", "t.id = s.k AND t.n > s.y", "t.id = s.k AND s.w <> 'a'"])
        return f"MERGE INTO t USING s ON {on} {' '.join(clauses)}"

    def sets(self, names: str) -> str:
        values = {"n": self.number, "v": self.text, "f": self.double}
        chosen = self._drawn.sample(sorted(values), self._drawn.randrange(1, 4))
        return ", ".join(f"{name} = {values[name](names)}" for name in chosen)

    def condition(self, names: str, depth: int = 0) -> str:
        drawn = self._drawn
        if depth < 2 and drawn.random() < 0.4:
            parts = [self.condition(names, depth + 1) for _ in range(2)]
            return f"({drawn.choice([' AND ', ' OR ']).join(parts)})"
        number, text = self.number(names), self.text(names)
        found = drawn.choice(
            [
                f"{number} {drawn.choice(['=', '<>', '<', '>=', '>'])} {self.number(names)}",
                f"{number} IN (1, 2, NULL)",
                f"{number} IS NULL",
                f"{text} = {self.text(names)}",
                f"{text} LIKE 'a%'",
                f"{number} BETWEEN -1 AND 2",
                f"{text} IS DISTINCT FROM 'a'",
            ]
        )
        if names == "t":
            found = drawn.choice([found, found, "t.d > DATE '2000-01-01'"])
        return f"NOT ({found})" if drawn.random() < 0.2 else found

    def _subquery(self) -> str:
        return self._drawn.choice(
            [
                "t.id IN (SELECT k FROM s)",
                "t.n < (SELECT max(y) FROM s)",
                "EXISTS (SELECT 1 FROM s WHERE s.k = t.id)",
                "t.id = (SELECT min(o.id) FROM t AS o)",
            ]
        )

    def number(self, names: str) -> str:
        return self._value(
            names,
            {"t": ["t.n", "t.id", "t.n + 1", "coalesce(t.n, 7)"], "s": ["s.y", "s.k", "s.y * 2"]},
            ["1", "NULL", "CASE WHEN {}.{} > 0 THEN 5 ELSE 6 END"],
        )

    def double(self, names: str) -> str:
        return self._value(names, {"t": ["t.f", "t.f * 2"], "s": ["s.y * 0.5"]}, ["1.5", "NULL"])

    def text(self, names: str) -> str:
        given = {"t": ["t.v", "t.v || 'x'", "upper(t.v)"], "s": ["s.w", "coalesce(s.w, 'z')"]}
        return self._value(names, given, ["'q'", "NULL"])

    def _value(self, names: str, given: dict[str, list[str]], other: Sequence[str]) -> str:
        drawn = self._drawn
        name = drawn.choice(names)
        chosen = drawn.choice([*given[name], *given[name], *other])
        return chosen.format(name, {"t": "n", "s": "y"}[name])


def _listed(found: list[dict[str, object]]) -> list[str]:
    return sorted(repr(list(each.values())) for each in found)


def over(written: Written, source: pa.Table) -> Session:
    spec = IcebergSource().resolve(written.request)
    return session({"t": spec, "s": MemoryTable(source.schema, source)})


def _overwrite(written: Written, drawn: pa.Table) -> None:
    """Have the table hold these rows alone; PyIceberg does it where it can."""
    stored = written.catalog.load_table("n.t")
    if stored.metadata.format_version > 2:
        written.replace(*written.placed())
        written.insert(drawn)
        return
    (stored.overwrite if stored.scan().to_arrow().num_rows else stored.append)(drawn)


async def check_random(folder: Path, count: int, seed: int, version: int = 2) -> dict[str, int]:
    """Compare statements with DuckDB, and return how many were carried out and refused."""
    statements = Statements(random.Random(seed))
    judge = duckdb.connect()
    written = written_tables.of_version(folder, version, SCHEMA)
    tally = {"changed": 0, "twice": 0}
    for number in range(count):
        if number % 8 == 0:  # Deletes of earlier statements apply to later ones.
            drawn_rows = statements.table(12)
            _overwrite(written, drawn_rows)
            judge.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM drawn_rows")
        source = statements.source()
        judge.execute("CREATE OR REPLACE TABLE s AS SELECT * FROM source")
        sql = statements.merge() if number % 2 else statements.change()
        session_ = over(written, source)
        before = _listed(judge.execute("SELECT * FROM t").to_arrow_table().to_pylist())
        try:
            changed = await write(session_, sql)
        except QueryError as exc:
            assert "than one row of the source" in exc.message, f"{exc.message}\n{sql}"
            assert _listed(written.own_rows()) == before
            tally["twice"] += 1
            continue
        (answer,) = judge.execute(sql).fetchall()
        after = judge.execute("SELECT * FROM t").to_arrow_table().to_pylist()
        assert changed == answer[0], sql
        found = await rows(over(written, source), "SELECT * FROM t")
        assert _listed(found) == _listed(after), f"{sql}\n{source.to_pylist()}\n{before}"
        if number % 4 == 0:
            assert _listed(written.read()) == _listed(after), sql
        tally["changed"] += 1
    return tally


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_random_writes_are_those_of_another_engine(tmp_path: Path, version: int) -> None:
    tally = await check_random(tmp_path, 40, 3, version)
    assert tally["changed"] > 30, tally


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(17, 27))
async def test_many_random_writes_are_those_of_another_engine(tmp_path: Path, seed: int) -> None:
    tally = await check_random(tmp_path, 500, seed)
    assert tally["changed"] > 400 and tally["twice"] > 0, tally
