"""Statements over accelerated datasets, written anew so that they reach the source behind them."""

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass

from caraway_core.ids import TableName
from caraway_core.manifest import names
from caraway_scheduler.acceleration.recipes import quoted
from caraway_scheduler.catalog.catalog import source_of

_GAP = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)"
_PART = r'(?:"(?:[^"]|"")+"|[^\W\d]\w*)'
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_INSERT = re.compile(rf"{_GAP}*INSERT{_GAP}+INTO{_GAP}+({_NAME})", re.IGNORECASE | re.DOTALL)
_WITH = re.compile(rf"{_GAP}*WITH{_GAP}+(RECURSIVE{_GAP}+)?", re.IGNORECASE | re.DOTALL)
_SELECT = re.compile(rf"{_GAP}*(?:SELECT\b|\()", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(_NAME)
_PREFIXES = ("caraway.", "public.")


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


def over_sources(sql: str, datasets: Iterable[TableName]) -> str | None:
    """Return a query with the sources of datasets in their place.

    None where it reads none of them by its own name, or cannot be written so.
    """
    found = {_table(match[0]) for match in _WORD.finditer(sql)}
    read = sorted(name for name in datasets if name in found and "." not in name)
    if not read:
        return None
    tables = ", ".join(
        f"{quoted(name)} AS (SELECT * FROM {quoted(source_of(name))})" for name in read
    )
    if match := _WITH.match(sql):
        return f"{match[0]}{tables}, {sql[match.end() :]}"
    return f"WITH {tables} {sql}" if _SELECT.match(sql) else None


def _table(written: str) -> TableName | None:
    text = re.sub(r"\s*\.\s*", ".", written)
    for prefix in _PREFIXES:
        if text.lower().startswith(prefix):
            text = text[len(prefix) :]
    try:
        return TableName(names.canonical(text))
    except ValueError:
        return None
