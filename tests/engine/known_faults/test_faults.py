"""Each known fault is still in the engine, and does not reach users."""

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults.catalogue import FAULTS
from tests.differential.asking import Runner
from tests.engine.known_faults.case import Case
from tests.engine.known_faults.cases import CASES
from tests.engine.known_faults.conftest import Ask
from tests.engine.known_faults.fault_rows import rows, rows_of

ANSWERED = [case for case in CASES if case.right is not None]
REFUSED = [case for case in CASES if case.right is None]


def ids(case: Case) -> str:
    return f"{case.fault}: {case.sql}"


def test_each_fault_has_a_case_and_each_case_a_fault() -> None:
    shown = {fault.name for fault in FAULTS if not fault.shown_in}
    assert {case.fault for case in CASES} == shown


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_engine_still_has_the_fault(case: Case, plain: Ask) -> None:
    """Where this fails the engine was mended: what keeps the fault from users may go."""
    try:
        found = rows(plain(case.sql))
    except BaseException as exc:
        # Of some faults the engine's own checks make an error.
        assert isinstance(exc, Exception) and "overflow" not in str(exc).lower()
        return
    assert case.right is None or found != rows_of(case.right)


@pytest.mark.parametrize("case", ANSWERED, ids=ids)
def test_users_get_the_right_answer(case: Case, runner: Runner) -> None:
    answer = runner.outcome(case.sql)
    assert isinstance(answer, pa.Table), answer
    assert rows(answer) == rows_of(case.right or ())


@pytest.mark.parametrize("case", REFUSED, ids=ids)
def test_users_get_an_error_that_says_what_to_write(case: Case, runner: Runner) -> None:
    outcome = runner.outcome(case.sql)
    assert isinstance(outcome, InvalidQueryError), outcome
    assert case.refusal in outcome.message
