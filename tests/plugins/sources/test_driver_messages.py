"""Messages of drivers: what they mean, and that none shows a login."""

import pytest

from caraway_plugins.sources import driver_messages


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ('FATAL:  password authentication failed for user "u"', True),
        ("fe_sendauth: no password supplied", True),
        ("Access denied for user 'u'@'h'", True),
        ("ERROR:  permission denied for table t", True),
        ("[28000] Login failed for user 'u'", True),
        ('role "of u" does not exist', True),
        ("SQL State: 28P01", True),
        ('relation "t" does not exist', False),
        ("", False),
    ],
)
def test_logins_that_are_refused(text: str, is_refused: bool) -> None:
    assert driver_messages.is_refused(text) is is_refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ERROR:  no table\nLINE 1: x", "no table"),
        ("driver: ERROR: no table", "no table"),
        ("first\nFATAL: gone\nERROR: later", "gone"),
        ("error: no", None),
        ("", None),
    ],
)
def test_messages_of_the_server(text: str, said: str | None) -> None:
    assert driver_messages.of_server(text) == said


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("cannot open hunter2", ["hunter2"]),
        ("user hunter2\nfailed", ["postgresql://u:hunter2@h/db"]),
        ("hunter2", ["Driver=x;PWD=hunter2;Server=h"]),
        ("hunter2", ["server=h token=hunter2"]),
        ("postgresql://u:hunter2@h/db is away", ["postgresql://u:hunter2@h/db"]),
    ],
)
def test_messages_with_a_login_are_not_shown(text: str, secrets: list[str]) -> None:
    assert driver_messages.shown(text, secrets) == "the message of the server holds the login"


@pytest.mark.parametrize("secrets", [[], [""], ["hunter2"], ["postgresql://h/db"]])
def test_others_are_one_short_line(secrets: list[str]) -> None:
    assert driver_messages.shown(" no\n\n table\t t ", secrets) == "no table t"
    assert driver_messages.shown("x" * 999, secrets) == "x" * 200


def test_comparisons_with_nan_and_values_that_do_not_fit() -> None:
    assert driver_messages.is_of_nan('invalid input syntax for type boolean: "NaN"')
    assert driver_messages.is_of_nan("cannot cast 'nan?' to BOOLEAN")
    assert not driver_messages.is_of_nan("nan")
    assert driver_messages.is_unfit("Python int overflows when converted")
    assert not driver_messages.is_unfit("overflow")
