"""Prints answers of a management service."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from caraway.terminal import terminals
from caraway_core.errors import CarawayError

Row = dict[str, Any]


def rows(found: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """Print a list as a table, or as JSON with everything that it has."""
    if as_json:
        print(json.dumps(list(found), indent=2))
        return
    # rich takes 0.1 s to import.
    from caraway.cli import tables

    tables.print_table([_flat(each) for each in found], columns)


def record(found: Mapping[str, object], *, as_json: bool, empty: str = "") -> None:
    """Print a resource: a line for each of its fields that has something, or as JSON.

    `empty` is printed if none has.
    """
    if as_json:
        print(json.dumps(found, indent=2))
        return
    flat = {name: each for name, each in _flat(_inner(found)).items() if each not in (None, "")}
    if empty and not flat:
        print(empty)
    width = max(map(len, flat), default=0)
    for name, each in flat.items():
        print(f"{name.ljust(width)}  {terminals.one_line(str(each))}")


def done(words: str, found: Mapping[str, object] | None = None, *, as_json: bool = False) -> None:
    """Say what was done, or print its answer as JSON."""
    print(json.dumps(found, indent=2) if as_json else terminals.one_line(words))


def confirm(question: str, *, is_confirmed: bool) -> None:
    """Ask before something is done that cannot be undone.

    Raises:
        CarawayError: there is nobody to ask.
    """
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise CarawayError(f"{question} Pass --yes to do it without being asked")
    typer.confirm(terminals.one_line(question), abort=True, err=True)


def read_secret(prompt: str) -> str:
    """Read a value that is not shown: from a prompt, or all of standard input.

    Raises:
        CarawayError: it is empty.
    """
    if sys.stdin.isatty():
        value: str = typer.prompt(prompt, hide_input=True, err=True)
    else:
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if not value:
        raise CarawayError("expected a value on standard input, but it is empty")
    return value


def _inner(found: Mapping[str, object]) -> Row:
    """Return a resource with the fields of its parts, as `part.field`."""
    fields: Row = {}
    for name, each in found.items():
        if isinstance(each, dict):
            fields |= {f"{name}.{inner}": value for inner, value in each.items()}
        else:
            fields[name] = each
    return fields


def _flat(found: Mapping[str, object]) -> Row:
    """Return a resource with plain values: lists with commas, other values as JSON."""
    return {name: _cell(each) for name, each in found.items()}


def _cell(value: object) -> object:
    match value:
        case list() if all(isinstance(each, str | int) for each in value):
            return ", ".join(map(str, value))
        case dict() | list():
            return json.dumps(value, ensure_ascii=False) if value else ""
    return value
