"""Which lines are logged, and where they go."""

import io
import json
import logging
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.process import logs

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["importlinter"]["root_packages"]


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """A stream that takes the logs as JSON; loggers are as before afterwards."""
    loggers = [logging.getLogger(name) for name in (None, *PACKAGES)]
    before = [(each, each.level, each.handlers[:]) for each in loggers]
    written = io.StringIO()
    logs.configure("json", stream=written)
    yield written
    for each, level, handlers in before:
        each.setLevel(level)
        each.handlers[:] = handlers


@pytest.mark.parametrize("package", PACKAGES)
def test_info_of_every_package_is_logged(package: str, stream: io.StringIO) -> None:
    logging.getLogger(f"{package}.somewhere").info("done", extra={"rows": 3})
    logging.getLogger(f"{package}.somewhere").debug("a detail")
    (event,) = map(json.loads, stream.getvalue().splitlines())
    assert (event["event"], event["rows"], event["level"]) == ("done", 3, "info")


def test_info_of_other_packages_is_not_logged(stream: io.StringIO) -> None:
    logging.getLogger("somebody.else").info("done")
    logging.getLogger("somebody.else").warning("careful")
    assert "done" not in stream.getvalue()
    assert "careful" in stream.getvalue()


VALUES = st.recursive(
    st.none() | st.floats() | st.integers() | st.text() | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text() | st.integers(), inner, max_size=2)
        | st.dictionaries(st.tuples(st.text()), inner, max_size=1)
    ),
    max_leaves=5,
)  # fmt: skip


def record(message: str, **extra: Any) -> logging.LogRecord:
    found = logging.LogRecord("x", logging.INFO, "", 0, "%s", (message,), None)
    vars(found).update(extra)
    return found


@given(st.text(), VALUES)
def test_every_event_is_one_line_of_json(message: str, value: Any) -> None:
    line = logs.JsonFormatter().format(record(message, field=value))
    assert "\n" not in line
    event = json.loads(line, parse_constant=lambda name: pytest.fail(name))
    assert event["event"] == message and "field" in event and event["level"] == "info"


def test_a_value_that_holds_itself_is_logged() -> None:
    value: list[Any] = []
    value.append(value)
    event = json.loads(logs.JsonFormatter().format(record("x", field=value, other=3)))
    assert event["field"] == "[[...]]"


@given(st.text(), st.text())
def test_every_event_is_one_line_of_text(message: str, value: str) -> None:
    line = logs.TextFormatter().format(record(message, field=value))
    assert line.isprintable() and len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [("plain", "plain"), (3, "3"), ("a b", '"a b"'), ("", '""'), ("a=b", '"a=b"'),
     ("a\nINFO forged", '"a\\\\nINFO forged"'), ("\x9b31m", '"\\\\x9b31m"'), ("é", "é"),
     ('"', '"\\""'), ("\u202e", '"\\\\u202e"')],
)  # fmt: skip
def test_fields_are_told_apart(value: object, expected: str) -> None:
    line = logs.TextFormatter().format(record("done", field=value))
    assert line.endswith(f"INFO    done field={expected}")


def test_an_exception_follows_its_line() -> None:
    try:
        raise ValueError("one\ntwo")
    except ValueError:
        failed = logging.LogRecord("x", logging.ERROR, "", 0, "bad", (), sys.exc_info())
    text = logs.TextFormatter().format(failed).splitlines()
    assert text[0].endswith("ERROR   bad") and text[1] == "Traceback (most recent call last):"
    assert json.loads(logs.JsonFormatter().format(failed))["exception"].endswith("one\ntwo")
