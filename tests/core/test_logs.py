"""Which lines are logged, and where they go."""

import io
import json
import logging
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core import logs

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
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
