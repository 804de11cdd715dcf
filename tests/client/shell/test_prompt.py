import pytest

from caraway.shell import prompt


@pytest.mark.parametrize(
    "text", ["", "  ", ".tables", "quit", "EXIT", "select 1;", "select 1; -- done", "a;\nb;"]
)
def test_enter_runs_what_is_whole(text: str) -> None:
    assert prompt.ends(text)


@pytest.mark.parametrize("text", ["select 1", "select ';", "select 1; select", "-- only;", "/* ;"])
def test_enter_starts_a_new_line_in_what_is_not(text: str) -> None:
    assert not prompt.ends(text)
