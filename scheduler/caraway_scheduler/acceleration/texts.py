"""Statements over accelerated datasets, written anew so that they reach the source behind them."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass

from caraway_core.ids import TableName
from caraway_core.manifest import names
from caraway_scheduler.acceleration.recipes import quoted
from caraway_scheduler.catalog.states import source_of

_GAP = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)"
_PART = r'(?:"(?:[^"]|"")+"|[^\W\d]\w*)'
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_INSERT = re.compile(rf"{_GAP}*INSERT{_GAP}+INTO{_GAP}+({_NAME})", re.IGNORECASE | re.DOTALL)
_WITH = re.compile(rf"{_GAP}*WITH{_GAP}+(RECURSIVE{_GAP}+)?", re.IGNORECASE | re.DOTALL)
_SELECT = re.compile(rf"{_GAP}*(?:SELECT\b|\()", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(_NAME)
_PREFIXES = ("caraway.", "public.")
_NO_VIEWS: Mapping[TableName, str] = {}


@dataclass(frozen=True, slots=True)
class Insertion:
    """An INSERT into the source of a dataset, in place of one into the dataset."""

    dataset: TableName
    sql: str


def insertion(sql: str, datasets: Container[TableName]) -> Insertion | None:
    """Return what an INSERT into one of the datasets is to be; None if this is none."""
    match = _INSERT.match(sql)
    dataset = _table(match[1]) if match else None
    if match is None or dataset is None or dataset not in datasets:
        return None
    return Insertion(
        dataset, sql[: match.start(1)] + quoted(source_of(dataset)) + sql[match.end(1) :]
    )


def over_sources(
    sql: str, datasets: Container[TableName], views: Mapping[TableName, str] = _NO_VIEWS
) -> str | None:
    """Return a query with the sources of datasets in their place, also behind views.

    None where it reads none of them, or cannot be written so.
    """
    read: dict[TableName, str] = {}
    for name in _named(sql):
        _read(name, datasets, views, read, frozenset())
    if not read:
        return None
    tables = ", ".join(f"{quoted(name)} AS ({text})" for name, text in read.items())
    if match := _WITH.match(sql):
        return f"{match[0]}{tables}, {sql[match.end() :]}"
    return f"WITH {tables} {sql}" if _SELECT.match(sql) else None


def _read(
    name: TableName,
    datasets: Container[TableName],
    views: Mapping[TableName, str],
    read: dict[TableName, str],
    within: frozenset[TableName],
) -> None:
    """Note what stands for a dataset, or for a view of one, behind what it reads itself."""
    if "." in name or name in read or name in within:
        return
    if name in datasets:
        read[name] = f"SELECT * FROM {quoted(source_of(name))}"
    elif name in views:
        below = _named(views[name])
        for each in below:
            _read(each, datasets, views, read, within | {name})
        if not read.keys().isdisjoint(below):
            # A comment may end it.
            read[name] = views[name].rstrip().removesuffix(";") + "\n" * ("--" in views[name])


def _named(sql: str) -> list[TableName]:
    """List what may be names of tables, in order."""
    found = dict.fromkeys(_table(match[0]) for match in _WORD.finditer(sql))
    return sorted(name for name in found if name is not None)


def _table(written: str) -> TableName | None:
    text = re.sub(r"\s*\.\s*", ".", written)
    for prefix in _PREFIXES:
        if text.lower().startswith(prefix):
            text = text[len(prefix) :]
    try:
        return TableName(names.canonical(text))
    except ValueError:
        return None
