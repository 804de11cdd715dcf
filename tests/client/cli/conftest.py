from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from caraway.cli import app
from tests.client.runtime import FakeRuntime

Command = Callable[..., Result]


@pytest.fixture
def caraway() -> Command:
    """Run the command line without a runtime."""

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app.build(), arguments, input=stdin, prog_name="caraway")

    return run


@pytest.fixture
def ask(caraway: Command, runtime: FakeRuntime) -> Command:
    """Run the command line with the fake runtime as its endpoint."""

    def run(*arguments: str, stdin: str | None = None) -> Result:
        return caraway(*arguments, "--endpoint", runtime.endpoint, stdin=stdin)

    return run
