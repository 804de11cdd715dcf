"""Builds groups of commands."""

from collections.abc import Callable, Mapping

import typer


def group(name: str, words: str, commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    """Build a group of commands."""
    made = typer.Typer(name=name, help=words, no_args_is_help=True, rich_markup_mode=None)
    for each, command in commands.items():
        made.command(each)(command)
    return made
