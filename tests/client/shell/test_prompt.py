import pytest

from caraway.shell import prompt


@pytest.mark.parametrize(
    "text", ["", "  ", ".tables", "quit", "EXIT", "select 1;", "select 1; -- done", "a;\nb;"]
)
def test_enter_runs_complete_input(text: str) -> None:
    assert prompt.is_complete(text)


@pytest.mark.parametrize("text", ["select 1", "select ';", "select 1; select", "-- only;", "/* ;"])
def test_enter_continues_incomplete_input(text: str) -> None:
    assert not prompt.is_complete(text)
