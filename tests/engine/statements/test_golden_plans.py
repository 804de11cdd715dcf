"""Reading of the plans of DataFusion 55: another version that differs fails here first."""

from difflib import unified_diff
from importlib.metadata import version

import pytest
from datafusion import SessionContext

from tests.engine.statements import golden

EXPECTED = {
    part.splitlines()[0].removeprefix("== "): part.strip()
    for part in golden.FILE.read_text().split("\n\n")
}


@pytest.fixture(scope="module")
def context() -> SessionContext:
    return golden.context()


@pytest.mark.parametrize("sql", golden.STATEMENTS)
def test_a_plan_is_what_it_was(context: SessionContext, sql: str) -> None:
    found = golden.outline(context, sql)
    lines = unified_diff(EXPECTED[sql].splitlines(), found.splitlines(), "before", "now", n=9)
    assert found == EXPECTED[sql], (
        f"DataFusion {version('datafusion')} plans this otherwise; see what of ours reads it:\n"
        + "\n".join(lines)
    )


def test_no_statement_is_left_over() -> None:
    assert set(EXPECTED) == set(golden.STATEMENTS)


def test_no_kind_of_a_node_is_unknown() -> None:
    assert "\nunknown" not in golden.FILE.read_text()
    assert "hidden" not in golden.FILE.read_text()
