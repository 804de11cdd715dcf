"""The work of an engine process: its user, and the suspect if the process ends."""

from dataclasses import dataclass

import pyarrow as pa
import pytest

from caraway_core.statements import Statement
from caraway_executor.engines import works
from caraway_executor.engines.works import Work
from tests.kit.fragments import task

TABLE = {"t": pa.schema([("v", pa.int64())])}


def test_statement_is_suspected_with_its_values() -> None:
    one = Work(Statement("SELECT $1", {"1": 1}), 0.0)
    assert one.is_users and one.key is not None
    assert one.key == Work(Statement("SELECT $1", {"1": 1}), 9.0, is_begun=True).key
    assert one.key != Work(Statement("SELECT $1", {"1": 2}), 0.0).key
    assert one.key != Work(Statement("SELECT  $1", {"1": 1}), 0.0).key


def test_work_of_the_runtime_is_not_suspected() -> None:
    assert Work(None, 0.0).key is None and not Work(None, 0.0).is_users


def test_task_is_that_of_its_own_statement() -> None:
    """Statements share fragments: one that ends the process must not have others refused."""
    one, other = task("SELECT v FROM t", TABLE), task("SELECT v FROM t", TABLE)
    assert one.query_id != other.query_id
    first, second = Work(None, 0.0, one), Work(None, 0.0, other)
    assert first.is_users and first.key == works.key_of(one)
    assert first.key != second.key


def test_statement_counts_before_its_task() -> None:
    statement = Statement("SELECT 1", {})
    both = Work(statement, 0.0, task("SELECT v FROM t", TABLE))
    assert both.key == Work(statement, 0.0).key


@dataclass
class _About:
    statement: object


@pytest.mark.parametrize("value", [None, 7, "SELECT 1", object(), _About("SELECT 1"), _About(None)])
def test_other_arguments_have_no_statement(value: object) -> None:
    assert works.statement_of(value) is None


def test_statement_is_found_in_a_question() -> None:
    statement = Statement("SELECT 1", {})
    assert works.statement_of(statement) is statement
    assert works.statement_of(_About(statement)) is statement
