import logging

import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_engine.errors import refusals

T = TableName("s.t")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DatasetError("invalid", "it is none"), "it is none"),
        (PermissionError(13, "Permission denied", "/secret/file"), "read: Permission denied"),
        (ValueError("Error during planning: no"), "no"),
    ],
)
def test_the_reason_is_that_of_the_error(error: Exception, words: str) -> None:
    assert words in refusals.reason(T, error)
    assert "/secret" not in refusals.reason(T, error)


def test_a_defect_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert "see the engine's log" in refusals.reason(T, KeyError("inner"))
    assert "inner" in caplog.text


def test_an_end_of_the_process_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        refusals.reason(T, KeyboardInterrupt())
