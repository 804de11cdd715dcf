import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from caraway.cli import app
from caraway.shell import commands

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
# The flags that commands share are described once, above the first of them.
INTRODUCTIONS = {
    "## Client commands": {"--endpoint", "--api-key", "--cacert"},
    "## Running a management service": {"--key-file"},
    "## Management commands": {"--management"},
}


def sections() -> dict[str, str]:
    """Return the text of each `### caraway COMMAND` section, and the text above the first."""
    top, *parts = re.split(r"^### `caraway ([a-z]+(?: [a-z-]+)?).*$", PAGE.read_text(), flags=re.M)
    return {"": top, **dict(zip(parts[::2], parts[1::2], strict=True))}


def root() -> TyperGroup:
    command = typer.main.get_command(app.build())
    assert isinstance(command, TyperGroup)
    return command


def flags() -> dict[str, set[str]]:
    """Return the long options and variables of each command, according to typer."""
    return {name: flags_of(found) for name, found in leaves(root())}


# Any: a command of click.
def flags_of(command: Any) -> set[str]:
    return {
        word
        for parameter in command.params
        for word in (*parameter.opts, *variables(parameter.envvar))
        if word.startswith("--") or word.isupper()
    }


def variables(envvar: str | list[str] | None) -> list[str]:
    return [envvar] if isinstance(envvar, str) else envvar or []


def leaves(group: TyperGroup, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the commands of a group and its subgroups with their full names."""
    for name, found in group.commands.items():
        if isinstance(found, TyperGroup):
            yield from leaves(found, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", found


def test_each_command_has_a_section() -> None:
    assert sections().keys() - {""} == flags().keys()


@pytest.mark.parametrize("name", flags())
def test_each_flag_and_variable_of_a_command_is_described(name: str) -> None:
    page = sections()
    text = page[name]
    for title, shared in INTRODUCTIONS.items():
        if flags()[name] >= shared:
            text += PAGE.read_text().partition(title)[2].partition("###")[0]

    described = set(re.findall(r"--[a-z-]+|CARAWAY_[A-Z_]+", text))

    assert flags()[name] <= described


def test_each_flag_on_the_page_exists() -> None:
    text = re.sub(r"```.*?```", "", PAGE.read_text(), flags=re.S)
    # A group may be a command itself, such as `caraway management`.
    groups = [flags_of(group) for group in (root(), *root().commands.values())]
    known = set().union(*flags().values(), *groups) | {"--help", "CARAWAY_MANAGEMENT_TOKEN"}

    assert set(re.findall(r"--[a-z][a-z-]+|CARAWAY_[A-Z_]+", text)) <= known | {
        "--install-completion",
        "--show-completion",
    }


@pytest.mark.parametrize("command", commands.ARGUMENTS)
def test_each_shell_command_is_described(command: str) -> None:
    assert f"`{command}" in sections()["sql"]
