"""Random statements over hostile values have the engine's answer, whatever database gives it."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import note

from caraway_core.errors import ExecutionError, QueryError
from tests.differential import (
    asking,
    duckdb_runner,
    flight_sql_runner,
    foreign_runners,
    hostile_table,
    mariadb_runner,
    postgres_runner,
    runners,
    sqlite_runner,
)
from tests.differential.asking import Pair, Runner
from tests.differential.comparing import ANY_ORDER, TOTAL, Outcome
from tests.differential.datasets import Dataset
from tests.differential.hostile_table import ALL, INFINITE
from tests.differential.pushed_statements import Pushed, statements
from tests.differential.runners import Opening
from tests.kit import generating
from tests.kit.remote import watched

pytestmark = pytest.mark.answers

DIALECTS: dict[str, Opening] = {
    **foreign_runners.RUNNERS,
    "caraway": flight_sql_runner.in_caraway,
    "duckdb": duckdb_runner.in_duckdb,
    "flightsql": flight_sql_runner.in_flight_sql,
    "mysql": mariadb_runner.in_mariadb,
    "postgres": postgres_runner.in_postgres,
    "sqlite": sqlite_runner.in_sqlite,
}
LONG = frozenset({"adbc/duckdb", "adbc/sqlite", "adbc/standard", "odbc/postgresql", "odbc/sqlite"})
"""Dialects that the full run tries: over other drivers they are those of others."""
PARAMS = [pytest.param(each, marks=pytest.mark.full if each in LONG else ()) for each in DIALECTS]
ODD_DOUBLES = {
    "adbc/sqlite": (INFINITE, -INFINITE),
    "mysql": (),
    "odbc/mysql": (),
    "odbc/sqlite": (INFINITE, -INFINITE),
    "sqlite": (INFINITE, -INFINITE),
}
"""Not all databases have NaN, -0.0 and infinite numbers."""
HAS_UNSIGNED = frozenset({"adbc/duckdb", "clickhouse", "duckdb", "mysql"})
HAS_NEAR_MOMENTS = frozenset({"snowflake"})
STATEMENTS = statements()
QUICK_EXAMPLES = 200
LONG_EXAMPLES = 5_000
LEAST_ANSWERED = 0.5
"""The rest overflows, or compares what the engine does not compare."""
LEAST_PUSHED = 0.1
"""The part of the statements of which the database does more than read columns."""
LEAST_JOINED = dict.fromkeys(
    (
        "adbc/duckdb", "adbc/postgresql", "clickhouse", "duckdb", "odbc/postgresql", "postgres",
        "spark",
    ),
    0.01,
)  # fmt: skip
"""The part of the statements of which the database joins tables."""


_TOO_LARGE = re.compile("verflow|exceeds the representable")
_LEAVES_OUT = re.compile("WHERE|LIMIT|HAVING| AND | OR | JOIN ")
"""A number that is too large is an error only for rows for which it is computed. Which those are is
not said where a condition, a limit or a join leaves rows out."""

_NOT_SORTED = "the engine cannot sort by an expression that compares computed numbers"
_REFUSED = "no safe form was found"
MOST_FAULTS = 0.03
"""Sorts by computed numbers that DataFusion 55 rejects, and joins that it would answer wrongly; the
database may answer them."""


class Tally:
    """Counts the statements of one run."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.asked = self.answered = self.pushed = self.joined = self.faults = 0

    def check(self) -> None:
        assert self.answered >= LEAST_ANSWERED * self.asked, vars(self)
        assert self.pushed >= LEAST_PUSHED * self.asked, vars(self)
        assert self.joined >= LEAST_JOINED.get(self.kind, 0) * self.asked, vars(self)
        assert self.faults <= MOST_FAULTS * self.asked, vars(self)


class Asking:
    """Runs each statement on both sides, and keeps what the database was sent."""

    def __init__(self, kind: str, pair: Pair, sent: list[str]) -> None:
        self.kind = kind
        self._pair = pair
        self._sent = sent

    def agree(self, drawn: Pushed, tally: Tally) -> None:
        note(drawn.sql)
        tally.asked += 1
        expected = self._pair.expected(drawn.sql)
        if _is_fault(expected):
            tally.faults += 1
            return
        self._sent.clear()
        got = self._pair.runner.outcome(drawn.sql)
        for each in self._sent:
            note(f"sent: {each}")
        if isinstance(got, QueryError) and _REFUSED in got.message:
            tally.faults += 1
            return
        tally.answered += not isinstance(expected, QueryError)
        tally.joined += any(" JOIN " in each for each in self._sent)
        tally.pushed += any(_is_more(each) for each in self._sent)
        if _is_overflow(expected) != _is_overflow(got) and _LEAVES_OUT.search(drawn.sql):
            return
        self._pair.judge(drawn.sql, expected, got, TOTAL if drawn.is_ordered else ANY_ORDER)


def _is_fault(outcome: Outcome) -> bool:
    return isinstance(outcome, ExecutionError) or (
        isinstance(outcome, QueryError) and _NOT_SORTED in outcome.message
    )


def _is_overflow(outcome: Outcome) -> bool:
    return isinstance(outcome, QueryError) and bool(_TOO_LARGE.search(outcome.message))


def _is_more(sql: str) -> bool:
    return any(word in sql for word in (" WHERE ", " GROUP BY ", " ORDER BY ", "count(", "sum("))


class References:
    """Opens one reference for all databases that have the same values."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self._folder = folder
        self._opened = opened
        self._by_values: dict[str, tuple[Dataset, Runner]] = {}

    def reference_of(self, kind: str) -> tuple[Dataset, Runner]:
        values: dict[str, Any] = {
            "odd_doubles": ODD_DOUBLES.get(kind, ALL),
            "has_unsigned": kind in HAS_UNSIGNED,
            "has_far_moments": kind not in HAS_NEAR_MOMENTS,
        }
        key = repr(values)
        if key not in self._by_values:
            folder = self._folder / str(len(self._by_values)) / "hostile"
            dataset = hostile_table.build(folder, **values)
            reference = self._opened.enter_context(asking.opened(runners.single_node, dataset))
            self._by_values[key] = dataset, reference
        return self._by_values[key]


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Iterator[References]:
    with ExitStack() as opened:
        yield References(tmp_path_factory.mktemp("dialects"), opened)


@pytest.fixture(scope="module", params=PARAMS)
def asking_of(request: pytest.FixtureRequest, references: References) -> Iterator[Asking]:
    kind = request.param
    dataset, reference = references.reference_of(kind)
    with asking.opened(DIALECTS[kind], dataset) as runner, watched(kind) as sent:
        yield Asking(kind, Pair(reference, runner), sent)


@pytest.mark.timeout(400)
def test_the_same_statements_every_time(asking_of: Asking) -> None:
    tally = Tally(asking_of.kind)
    generating.check_same(STATEMENTS, QUICK_EXAMPLES, lambda drawn: asking_of.agree(drawn, tally))
    tally.check()


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_other_statements_every_time(asking_of: Asking, request: pytest.FixtureRequest) -> None:
    tally = Tally(asking_of.kind)
    generating.check_others(
        statements(),
        LONG_EXAMPLES,
        lambda drawn: asking_of.agree(drawn, tally),
        request,
        tally.check,
    )
