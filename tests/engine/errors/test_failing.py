"""Errors of databases find their way through the engine, which keeps only text."""

import pytest

from caraway_core.errors import ExecutionError
from caraway_engine.errors import failing


def test_error_is_found_in_the_text_that_the_engine_makes_of_it() -> None:
    error = ExecutionError("the database is away")
    mark = failing.marked(error)
    text = f"External error: Python error: RemoteFailure: {mark}\nbacktrace: x"
    assert failing.found(text) is error
    assert error.message not in text


@pytest.mark.parametrize(
    "text", ["", "caraway-remote-", "caraway-remote-0000000000000000", "caraway-remote-XYZ"]
)
def test_text_without_a_known_mark_has_no_error(text: str) -> None:
    assert failing.found(text) is None


def test_errors_do_not_pile_up() -> None:
    first = str(failing.marked(ExecutionError("first")))
    marks = [str(failing.marked(ExecutionError(str(number)))) for number in range(failing._MOST)]
    assert failing.found(first) is None
    assert [str(failing.found(each)) for each in (marks[0], marks[-1])] == [
        "0",
        str(failing._MOST - 1),
    ]
