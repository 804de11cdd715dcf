"""One node gives the same answers as DuckDB: the corpus, and random statements."""

from collections.abc import Iterator

import pytest
from hypothesis import note

from caraway_core.errors import QueryError
from tests.differential import judging, loading
from tests.differential.asking import Runner
from tests.differential.corpus_cases import ids
from tests.differential.datasets import Dataset
from tests.differential.generated import Query, queries
from tests.differential.generated_order import MOST_ROWS
from tests.differential.judging import Judge
from tests.differential.loading import Case
from tests.kit import generating

pytestmark = pytest.mark.answers

_LANGUAGE = "the languages differ"
_JUDGE = "DuckDB is wrong or less exact"
DIFFERENT = {
    "array_agg sorted by a function around it": _LANGUAGE,  # where NULL is sorted
    "aggregate of an expression": _JUDGE,  # averages of decimals are doubles
    "CTE with an aggregate and its detail": _JUDGE,
    "decimal arithmetic": _JUDGE,
    "float division by zero": _LANGUAGE,  # NULL there
    "try_cast of text": _LANGUAGE,
    "LIKE with ESCAPE": _LANGUAGE,
    "bytes": _LANGUAGE,
    "parts of zoned timestamps": _LANGUAGE,  # of the session's zone there, of the column's here
    "date_trunc": _LANGUAGE,
    "AT TIME ZONE": _LANGUAGE,
    "group by a local day": _LANGUAGE,
    "timestamp arithmetic": _LANGUAGE,
    "arithmetic of zoned timestamps over a change of clocks": _LANGUAGE,
    "lists compared": _LANGUAGE,
    "information schema of a table": _LANGUAGE,
    "columns that are capital, spaced or dotted": _LANGUAGE,  # names differ by case only here
}
# A statement that keeps some of several equal rows has no unique answer.
ANSWERED = [
    case for case in loading.cases() if not (case.error or case.whole or case.name in DIFFERENT)
]
QUICK_EXAMPLES, LONG_EXAMPLES = 60, 2000
LEAST_JUDGED = 0.85
LEAST_GENERATED = 0.5


@pytest.fixture(scope="module")
def duck(small: Dataset) -> Iterator[Judge]:
    with judging.judge(small) as opened:
        yield opened


def test_known_differences_name_existing_cases() -> None:
    assert DIFFERENT.keys() <= {case.name for case in loading.cases()}


def test_most_statements_are_judged(duck: Judge) -> None:
    judged = [case.name for case in ANSWERED if duck.rows(case.sql) is not None]
    assert len(judged) >= LEAST_JUDGED * len(ANSWERED)


@pytest.mark.parametrize("case", ANSWERED, ids=ids)
def test_answers_are_those_of_duckdb(case: Case, small_reference: Runner, duck: Judge) -> None:
    theirs = duck.rows(case.sql)
    ours = small_reference.remembered(case.sql)
    assert not isinstance(ours, QueryError), ours
    assert theirs is None or judging.counted(ours) == theirs


class Tally:
    """Counts the outcomes of the statements of one run."""

    def __init__(self) -> None:
        self.asked = self.judged = 0

    def check(self) -> None:
        assert self.judged >= LEAST_GENERATED * self.asked, vars(self)


def agree(query: Query, reference: Runner, duck: Judge, tally: Tally) -> None:
    # A statement that keeps some of several equal rows has no unique answer.
    if query.whole is not None:
        return
    ours = reference.outcome(query.sql)
    note(query.sql)
    tally.asked += 1
    if isinstance(ours, QueryError) or ours.num_rows > MOST_ROWS:
        return
    theirs = duck.rows(query.sql)
    if theirs is None:
        return
    tally.judged += 1
    assert judging.counted(ours) == theirs, query.sql


def test_the_same_statements_every_time(small_reference: Runner, duck: Judge) -> None:
    tally = Tally()
    generating.check_same(
        queries(), QUICK_EXAMPLES, lambda query: agree(query, small_reference, duck, tally)
    )
    tally.check()


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_other_statements_every_time(
    small_reference: Runner, duck: Judge, request: pytest.FixtureRequest
) -> None:
    tally = Tally()
    generating.check_others(
        queries(),
        LONG_EXAMPLES,
        lambda query: agree(query, small_reference, duck, tally),
        request,
        tally.check,
    )
