"""Remedies keep the meaning of names: random statements have the rows that DuckDB gives."""

from collections.abc import Iterator

import pytest
from hypothesis import note

from caraway_core.errors import QueryError
from caraway_engine.known_faults.catalogue import FAULTS
from caraway_engine.known_faults.known_fault import Remedy
from tests.differential import judging
from tests.differential.asking import Runner
from tests.differential.datasets import Dataset
from tests.differential.judging import Judge
from tests.engine.known_faults import tables
from tests.engine.known_faults.name_shapes import NEW_NAMES, filtered_groups, probes, statements
from tests.engine.known_faults.name_triggers import TRIGGERS
from tests.kit import generating

pytestmark = pytest.mark.answers

QUICK_EXAMPLES, LONG_EXAMPLES = 5, 400
LEAST_JUDGED = 0.6
WITHOUT = {
    "correlated-limit": "refused",
    "chance-in-cte": "refused",
    "chance-compared": "the rows are random; see test_chance",
    "chance-in-groups": "the rows are random; see test_chance",
    "chance-moved": "the rows are random; see test_chance",
    "windows-by-chance": "the rows are random; see test_random_keys",
    "parts-in-parentheses": "a syntax error; see test_grouping_parts",
    "cancelled-xor": "DuckDB has a function instead of the sign; see test_xors",
    "bare-names": "a setting; see tests/differential/test_joins.py",
}
# HAVING is drawn over one table, whose values are numbers.
FILTERED = [
    name
    for name, each in TRIGGERS.items()
    if each.aggregates
    and not each.from_
    and each.groupings == ("{}",)
    and each.table not in ("moments", "texts")
]


class Tally:
    """Counts the outcomes of the statements of one run."""

    def __init__(self) -> None:
        self.asked = self.judged = 0
        self.refused: list[str] = []

    def check(self) -> None:
        assert self.judged >= LEAST_JUDGED * self.asked, self.refused[:20]


@pytest.fixture(scope="module")
def duck(faulty: Dataset) -> Iterator[Judge]:
    with judging.judge(faulty) as opened:
        yield opened


@pytest.fixture(scope="module")
def backwards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Open a judge whose tables have the same rows in the opposite order."""
    dataset = tables.build(tmp_path_factory.mktemp("backwards"), is_backwards=True)
    with judging.judge(dataset) as opened:
        yield opened


def agree(sql: str, runner: Runner, duck: Judge, tally: Tally, meaning: str = "") -> None:
    note(sql)
    tally.asked += 1
    ours, theirs = runner.outcome(sql), duck.in_order(meaning or sql)
    if isinstance(ours, QueryError) or theirs is None:
        tally.refused.append(f"{ours if isinstance(ours, QueryError) else 'DuckDB'}: {sql}")
        return
    tally.judged += 1
    assert judging.listed(ours) == theirs, sql


def test_each_remedy_has_a_trigger() -> None:
    rewritten = {each.name for each in FAULTS if each.remedy in (Remedy.REWRITTEN, Remedy.GUARDED)}
    assert rewritten - WITHOUT.keys() <= TRIGGERS.keys()
    assert TRIGGERS.keys() <= {each.name for each in FAULTS}


@pytest.mark.parametrize("fault", FILTERED)
def test_new_names_in_having_are_columns_of_no_table(fault: str) -> None:
    assert not {*NEW_NAMES} & {*tables.tables()[TRIGGERS[fault].table].column_names}


@pytest.mark.parametrize("fault", TRIGGERS)
def test_no_part_depends_on_the_order_of_rows(fault: str, duck: Judge, backwards: Judge) -> None:
    for sql in probes(TRIGGERS[fault]):
        rows = duck.in_order(sql)
        assert rows is not None, f"DuckDB refuses {sql}"
        assert rows == backwards.in_order(sql), sql


@pytest.mark.parametrize("fault", TRIGGERS)
def test_the_same_statements_every_time(fault: str, runner: Runner, duck: Judge) -> None:
    tally = Tally()
    generating.check_same(
        statements(TRIGGERS[fault]), QUICK_EXAMPLES, lambda sql: agree(sql, runner, duck, tally)
    )
    tally.check()


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", TRIGGERS)
def test_other_statements_every_time(
    fault: str, runner: Runner, duck: Judge, request: pytest.FixtureRequest
) -> None:
    tally = Tally()
    generating.check_others(
        statements(TRIGGERS[fault]),
        LONG_EXAMPLES,
        lambda sql: agree(sql, runner, duck, tally),
        request,
        tally.check,
    )


@pytest.mark.parametrize("fault", FILTERED)
def test_names_in_having_mean_columns_before_aliases(
    fault: str, runner: Runner, duck: Judge
) -> None:
    tally = Tally()
    generating.check_same(
        filtered_groups(TRIGGERS[fault]),
        QUICK_EXAMPLES,
        lambda pair: agree(pair[0], runner, duck, tally, pair[1]),
    )
    tally.check()


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", FILTERED)
def test_other_names_in_having(
    fault: str, runner: Runner, duck: Judge, request: pytest.FixtureRequest
) -> None:
    tally = Tally()
    generating.check_others(
        filtered_groups(TRIGGERS[fault]),
        LONG_EXAMPLES,
        lambda pair: agree(pair[0], runner, duck, tally, pair[1]),
        request,
        tally.check,
    )
