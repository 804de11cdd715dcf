"""Random UPDATE and DELETE statements leave a database with the rows that the engine computes.

The engine's answers over the rows before are the model: which rows meet the condition, and which
values their columns get.
"""

import asyncio
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import MemoryTable
from caraway_engine.sessions.sessions import Session
from tests.differential import hostile_table, pushed_statements
from tests.differential.hostile_table import ALL, COLUMNS, INFINITE, LITERALS, NAME
from tests.kit import duckdb_files, generating, mariadb, postgres, remote, sqlite_files
from tests.kit.engine import rows, session

pytestmark = pytest.mark.answers

QUICK_EXAMPLES = 150
LONG_EXAMPLES = 5_000
LEAST_CHANGED = {"sqlite": 0.15, "mysql": 0.15}
"""The part of the statements that the database runs; the others are refused, or overflow."""
_USUAL = 0.3
_REFUSED = re.compile(
    "is not supported|no column gets another value|MySQL sets columns one after the other"
)
_TOO_LARGE = re.compile(
    "verflow|exceeds the representable|out of range|too large|does not fit|Out of range|outside"
)
_NOT_KEPT = re.compile(
    "which it cannot keep|Invalid argument|Cast error|cannot be cast|Can't cast value"
)
_NAN_COMPARED = re.compile("a condition compares a NaN")
"""How a database ends a comparison with NaN, which it would answer otherwise."""
_TYPES = {
    pa.float64(): "Float64", pa.string(): "Utf8", pa.date32(): "Date32", pa.bool_(): "Boolean",
    pa.timestamp("us"): "Timestamp(Microsecond, None)",
}  # fmt: skip
_BEFORE = f"{NAME}_before"


@dataclass(frozen=True, slots=True)
class Changed:
    """A statement, by its condition and the new values of columns; without those, a DELETE."""

    condition: str
    assigned: tuple[tuple[str, str], ...] = ()

    @property
    def sql(self) -> str:
        where = f" WHERE {self.condition}" if self.condition else ""
        if not self.assigned:
            return f"DELETE FROM {NAME}{where}"
        listed = ", ".join(f"{name} = {value}" for name, value in self.assigned)
        return f"UPDATE {NAME} SET {listed}{where}"

    def expected(self, schema: pa.Schema) -> str:
        """Return the query for the keys of the rows that it changes, with their new values."""
        where = f" WHERE {self.condition}" if self.condition else ""
        values = "".join(
            f", arrow_cast({value}, '{_engine_type(schema.field(name).type)}') AS {name}"
            for name, value in self.assigned
        )
        return f"SELECT id AS key{values} FROM {NAME}{where}"


def _engine_type(type_: pa.DataType) -> str:
    """Return the engine's name of a type."""
    if pa.types.is_decimal(type_):
        return f"Decimal128({type_.precision}, {type_.scale})"
    return _TYPES.get(type_) or str(type_).replace("uint", "UInt").replace("int", "Int")


@st.composite
def statements(draw: DrawFn) -> Changed:
    condition = draw(pushed_statements.conditions(1)) if draw(st.integers(0, 5)) else ""
    if draw(st.integers(0, 3)) == 0:
        return Changed(condition)
    names = draw(st.lists(st.sampled_from([*COLUMNS]), min_size=1, max_size=3, unique=True))
    return Changed(condition, tuple((name, draw(_values(COLUMNS[name]))) for name in names))


@st.composite
def _values(draw: DrawFn, kind: str) -> str:
    match draw(st.integers(0, 5)):
        case 0:
            return "NULL"
        case 1 | 2:
            return draw(st.sampled_from(LITERALS[kind]))
        case _:
            return draw(pushed_statements.values(kind)).sql


STATEMENTS = statements()


class Place:
    """A database with the hostile table, and the rows that it began with."""

    def __init__(self, kind: str, request: SourceRequest, run: Callable[..., None]) -> None:
        self.kind = kind
        self._run = run
        self._request = replace(request, access="read_write")
        self.over, self.schema = self._resolved()
        self._keep()
        self.before = self.found()
        made = pa.Table.from_pylist(list(self.before.values()), schema=self.schema)
        self.model = session({NAME: MemoryTable(self.schema, made)})

    def _resolved(self) -> tuple[Session, pa.Schema]:
        spec = registry.SOURCES.load(self.kind)().resolve(self._request)
        assert spec.written is not None
        return session({NAME: spec}), spec.written.schema

    def _keep(self) -> None:
        self._run(f"CREATE TABLE {_BEFORE} AS SELECT * FROM {NAME}")

    def found(self) -> dict[int, dict[str, Any]]:
        listed = asyncio.run(rows(self.over, f"SELECT * FROM {NAME}"))
        return {each["id"]: each for each in listed}

    def listed(self) -> list[str]:
        return _listed(asyncio.run(rows(self.over, f"SELECT * FROM {NAME}")))

    def change(self, sql: str) -> int:
        names = frozenset({TableName(NAME)})
        (counted,) = asyncio.run(rows(self.over, sql, writable=names))
        return int(counted["count"])

    def restore(self) -> None:
        self._run(f"DELETE FROM {NAME}", f"INSERT INTO {NAME} SELECT * FROM {_BEFORE}")


class DeltaPlace(Place):
    """A Delta table of several files, which are skipped by statistics and by a column."""

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self._folder, self._kept = folder / NAME, folder / _BEFORE
        for place in range(0, rows.num_rows, 30):
            part = rows.slice(place, 30)
            deltalake.write_deltalake(self._folder, part, mode="append", partition_by=["b"])
        asked = SourceRequest(TableName(NAME), "delta", NAME, {}, (), "read", folder, folder)
        super().__init__("delta", asked, lambda *_sql: None)

    def _keep(self) -> None:
        shutil.copytree(self._folder, self._kept)

    def change(self, sql: str) -> int:
        count = super().change(sql)
        self.over, _ = self._resolved()
        return count

    def restore(self) -> None:
        shutil.rmtree(self._folder)
        shutil.copytree(self._kept, self._folder)
        self.over, _ = self._resolved()


def _listed(found: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(
        repr([value + 0.0 if isinstance(value, float) else value for value in each.values()])
        for each in found
    )


class Tally:
    """Counts the statements of one run."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.asked = self.changed = self.refused = self.failed = 0

    def check(self) -> None:
        assert self.changed >= LEAST_CHANGED.get(self.kind, _USUAL) * self.asked, vars(self)


def agree(place: Place, drawn: Changed, tally: Tally) -> None:
    note(drawn.sql)
    tally.asked += 1
    before = _listed(list(place.before.values()))
    try:
        expected: list[dict[str, Any]] | QueryError = asyncio.run(
            rows(place.model, drawn.expected(place.schema))
        )
    except QueryError as exc:
        expected = exc
    try:
        count = place.change(drawn.sql)
    except QueryError as exc:
        note(exc.message)
        assert place.listed() == before, f"{exc.message}\n\n{drawn.sql}"
        if _REFUSED.search(exc.message):
            tally.refused += 1
            return
        tally.failed += 1
        is_explained = isinstance(expected, QueryError) or _TOO_LARGE.search(exc.message)
        is_explained = is_explained or _NAN_COMPARED.search(exc.message)
        assert is_explained or _NOT_KEPT.search(exc.message), f"{exc.message}\n\n{drawn.sql}"
        return
    try:
        tally.changed += 1
        if isinstance(expected, QueryError):
            # Which rows a number is computed for is not said where a condition leaves rows out.
            is_open = drawn.condition and _TOO_LARGE.search(expected.message)
            assert is_open, f"{expected.message}\n\n{drawn.sql}"
            return
        new = {each.pop("key"): each for each in expected}
        after = [
            {**row, **new.get(key, {})}
            for key, row in place.before.items()
            if drawn.assigned or key not in new
        ]
        assert (count, place.listed()) == (len(new), _listed(after)), drawn.sql
    finally:
        place.restore()


@contextmanager
def in_postgres(_folder: Path) -> Iterator[Place]:
    with postgres.serving() as server:
        remote.load(server, NAME, hostile_table.rows(ALL))
        yield Place("postgres", remote.request(server, NAME), server.execute)


@contextmanager
def in_mysql(_folder: Path) -> Iterator[Place]:
    with mariadb.serving(in_memory=True) as server:
        mariadb.load(server, NAME, hostile_table.rows((), has_unsigned=True))
        server.execute(f"ALTER TABLE {NAME} ENGINE=InnoDB")
        yield Place("mysql", mariadb.request(server, NAME), server.execute)


@contextmanager
def in_sqlite(folder: Path) -> Iterator[Place]:
    file = folder / "changed.db"
    loaded = hostile_table.rows((INFINITE, -INFINITE))
    sqlite_files.load(file, NAME, loaded)
    declared = list(loaded.schema)  # A decimal of 38 digits is kept as text.
    yield Place(
        "sqlite",
        sqlite_files.request(file, NAME, declared),
        lambda *sql: sqlite_files.run(file, *sql),
    )


@contextmanager
def in_duckdb(folder: Path) -> Iterator[Place]:
    file = folder / "changed.duckdb"
    duckdb_files.load(file, NAME, hostile_table.rows(ALL, has_unsigned=True))
    yield Place(
        "duckdb", duckdb_files.request(file, NAME), lambda *sql: duckdb_files.run(file, *sql)
    )


@contextmanager
def in_delta(folder: Path) -> Iterator[Place]:
    yield DeltaPlace(folder, hostile_table.rows(ALL))


PLACES = {
    "delta": in_delta,
    "duckdb": in_duckdb,
    "mysql": in_mysql,
    "postgres": in_postgres,
    "sqlite": in_sqlite,
}


@pytest.fixture(scope="module", params=PLACES)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    with PLACES[request.param](tmp_path_factory.mktemp("changes")) as made:
        yield made


def test_every_database_that_is_changed_is_here() -> None:
    names = registry.REMOTE_READERS
    assert set(PLACES) == {each for each in names if registry.database_reader(each).is_changeable}


@pytest.mark.timeout(400)
def test_the_same_statements_every_time(place: Place) -> None:
    tally = Tally(place.kind)
    generating.check_same(STATEMENTS, QUICK_EXAMPLES, lambda drawn: agree(place, drawn, tally))
    tally.check()


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_other_statements_every_time(place: Place, request: pytest.FixtureRequest) -> None:
    tally = Tally(place.kind)
    generating.check_others(
        statements(), LONG_EXAMPLES, lambda drawn: agree(place, drawn, tally), request, tally.check
    )
