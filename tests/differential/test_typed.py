"""Random typed statements have DuckDB's rows, and never fail within the engine."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.differential import asking, judging, runners
from tests.differential.asking import Runner
from tests.differential.conftest import RUNNERS
from tests.differential.datasets import Dataset
from tests.differential.judging import Judge
from tests.differential.typed import tables
from tests.differential.typed.statements import statement
from tests.differential.typed.verdicts import ALIKE, SAME, verdict

pytestmark = pytest.mark.answers

QUICK, LONG = 150, 2_000
LEAST_SAME = 0.9
"""The share of statements that are answered. The others are refused, with a reason."""
OPENINGS = {"one-node": runners.single_node} | {
    name: RUNNERS[name]
    for name in ("early", "repeating", "shuffling", "two-by-hash", "three-in-process")
}
ORDINARY = ("one-node", "early", "two-by-hash")
PARAMS = [
    pytest.param(name, marks=() if name in ORDINARY else pytest.mark.full) for name in OPENINGS
]


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return tables.build(tmp_path_factory.mktemp("typed") / "tables")


@pytest.fixture(scope="module")
def judge(typed: Dataset) -> Iterator[Judge]:
    with judging.judge(typed) as opened:
        yield opened


@pytest.fixture(scope="module", params=PARAMS)
def runner(request: pytest.FixtureRequest, typed: Dataset) -> Iterator[Runner]:
    with asking.opened(OPENINGS[request.param], typed) as opened:
        yield opened


def check(runner: Runner, judge: Judge, seeds: range) -> None:
    tally: Counter[str] = Counter()
    different = []
    for seed in seeds:
        found = statement(seed)
        said = verdict(found, runner.outcome(found.sql), judge)
        tally[said.word] += 1
        if said.word not in ALIKE:
            different.append(f"{said.word} {said.text}\n{seed}: {found.sql}")
    assert not different, "\n".join(different)
    assert tally[SAME] >= LEAST_SAME * len(seeds), tally


def test_the_same_statements_every_time(runner: Runner, judge: Judge) -> None:
    check(runner, judge, range(QUICK))


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_other_statements_every_time(
    runner: Runner, judge: Judge, request: pytest.FixtureRequest
) -> None:
    chosen = request.config.getoption("--hypothesis-seed") or random.randrange(2**32)
    first = 1_000 * int(chosen)
    check(runner, judge, range(first, first + LONG))


def test_a_seed_draws_one_statement() -> None:
    assert [statement(seed) for seed in range(50)] == [statement(seed) for seed in range(50)]
    assert len({statement(seed).sql for seed in range(50)}) > 40
