"""Every statement of the corpus has the same answer on a runner as on one node."""

import re
from collections import Counter

import pytest

from tests.differential.asking import Pair, Runner
from tests.differential.corpus_cases import ANSWERED, CASES, answered, ids, order
from tests.differential.loading import Case

FAILING = [case for case in CASES if case.error]
ONE_NODE = (
    "other-partitions",
    "repeating",
    "shuffling",
    "early",
    "clickhouse",
    "sqlite",
    "delta",
    "duckdb",
    "postgres",
)
SEVERAL_TASKS = re.compile(r"\b([2-9]|\d\d+) tasks on")
LEAST_DIVIDED = {"two-over-postgres": 0.5}
"""The minimum share of divided statements over databases, which answer many aggregates whole."""
_LEAST_DIVIDED = 0.6
"""The minimum share of divided statements; a suite over whole statements would prove nothing."""


def test_corpus_is_large_and_its_names_are_unique() -> None:
    assert len(CASES) >= 300
    assert [name for name, n in Counter(case.name for case in CASES).items() if n > 1] == []


def test_no_statement_occurs_twice() -> None:
    texts = Counter(" ".join(case.sql.split()) for case in CASES)
    assert [sql for sql, n in texts.items() if n > 1] == []


def test_statements_that_order_their_rows_say_so() -> None:
    silent = [case.name for case in ANSWERED if _orders(case.sql) and case.order == "none"]
    loud = [case.name for case in ANSWERED if not _orders(case.sql) and case.order != "none"]
    assert silent == [] and loud == []


def test_statements_that_keep_some_of_several_rows_name_the_whole() -> None:
    def keeps_some(case: Case) -> bool:
        limits = re.search(r"\b(LIMIT [1-9]|OFFSET)", _outside_of_parentheses(case.sql))
        return bool(limits) and case.order != "total"

    assert [case.name for case in ANSWERED if keeps_some(case) != bool(case.whole)] == []


@pytest.mark.answers
def test_most_statements_answer_rows(small_reference: Runner) -> None:
    answers = {case.name: answered(small_reference.remembered(case.sql)) for case in ANSWERED}
    rows = {name: answer.num_rows for name, answer in answers.items()}
    empty = [name for name, count in rows.items() if not count]
    assert len(empty) < len(ANSWERED) / 12, empty


@pytest.mark.answers
def test_no_statement_runs_without_its_guards(
    small_reference: Runner, unguarded: list[str]
) -> None:
    for case in ANSWERED:
        small_reference.remembered(case.sql)
    assert unguarded == []


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.full)])
def test_most_statements_run_on_several_executors(
    every: int, on_small: Pair, request: pytest.FixtureRequest
) -> None:
    asked = ANSWERED[::every]
    divided = [case for case in asked if SEVERAL_TASKS.search(on_small.runner.explain(case.sql))]
    name = request.node.callspec.params["opening"]
    least = 0.0 if name in ONE_NODE else LEAST_DIVIDED.get(name, _LEAST_DIVIDED) * len(asked)
    assert bool(divided) == bool(least) and len(divided) >= least


@pytest.mark.parametrize("case", ANSWERED, ids=ids)
def test_answers_are_equal(case: Case, on_small: Pair) -> None:
    answered(on_small.expected(case.sql))
    on_small.check(case.sql, order(case, on_small))


@pytest.mark.parametrize("case", FAILING, ids=ids)
def test_errors_are_equal(case: Case, on_small: Pair) -> None:
    assert type(on_small.expected(case.sql)).__name__ == case.error
    on_small.check(case.sql)


def _orders(sql: str) -> bool:
    return bool(re.search(r"\bORDER BY\b", _outside_of_parentheses(sql)))


def _outside_of_parentheses(sql: str) -> str:
    while (inner := re.sub(r"\([^()]*\)", "", sql)) != sql:
        sql = inner
    return sql
