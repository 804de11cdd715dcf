"""Hints for one question: values that it names, dates that it means, and columns that errors lack.

Small models know the words of a question but not in which table they are. Pure functions.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import date

from caraway_ai.text_to_sql.described import DescribedTable
from caraway_ai.text_to_sql.relating import without_prefix
from caraway_ai.tools.sql_names import plain_name, plain_table
from caraway_core.ids import TableName

_MOST_HINTS = 8
_LEAST_CHARACTERS = 3
_MOMENTS = ("Date", "Timestamp")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_PERIOD = re.compile(rf"\b(?:({'|'.join(_MONTHS)})(?: of)? )?((?:19|20)\d\d)\b", re.IGNORECASE)
_MISSING = re.compile(r"column '(?:[^']*\.)?([^'.]+)' not found")


def question_hints(question: str, tables: Sequence[DescribedTable]) -> Sequence[str]:
    """Return the sampled values that a question names, and its years and months as ranges."""
    return [*_periods(question, tables), *_values(question, tables)][:_MOST_HINTS]


def error_hint(error: str, tables: Sequence[DescribedTable]) -> str:
    """Return where the column is that an error says is missing; empty where that is not known."""
    match = _MISSING.search(error)
    if match is None:
        return ""
    missing = without_prefix(match[1].lower())
    found = {
        each.table.name: f"{plain_table(each.table.name)}.{plain_name(column.name)}"
        for each in tables
        for column in each.columns
        if without_prefix(column.name.lower()) == missing
    }
    if not found:
        return ""
    places = " and ".join([*found.values()][:_MOST_HINTS])
    hint = f"There is {places}: read from that table, or join it."
    return " ".join([hint, *_joins(tables, found, _known_tables(error))])


def _known_tables(error: str) -> Collection[str]:
    """Return the tables that the failed statement reads, as its error lists their columns."""
    _, _, listed = error.partition("Known columns: ")
    return {name.rpartition(".")[0] for name in listed.rstrip(".").split(", ")}


def _joins(
    tables: Sequence[DescribedTable], names: Collection[TableName], known: Collection[str]
) -> Iterator[str]:
    for each in tables:
        for relation in each.relations:
            name, other = plain_table(each.table.name), plain_table(relation.other)
            column = f"{name}.{plain_name(relation.column)}"
            key = f"{other}.{plain_name(relation.other_column)}"
            if name in known and relation.other in names:
                yield f"Write: FROM {name} JOIN {other} ON {column} = {key}."
            elif other in known and each.table.name in names:
                yield f"Write: FROM {other} JOIN {name} ON {column} = {key}."


def _values(question: str, tables: Sequence[DescribedTable]) -> Iterator[str]:
    asked = question.lower()
    seen: dict[str, list[str]] = {}
    for each in tables:
        for column in each.columns:
            sampled = each.values.get(column.name)
            if sampled is None or column.data_type.startswith(_MOMENTS):
                continue
            for value in (*sampled.values, *sampled.others):
                if isinstance(value, str) and _names(asked, value.lower()):
                    place = f"{plain_table(each.table.name)}.{plain_name(column.name)}"
                    seen.setdefault(value, []).append(place)
    for value, places in seen.items():
        literal = "'" + " ".join(value.split()).replace("'", "''") + "'"
        yield f"{literal} is a value of {' and of '.join(places)}"


def _names(asked: str, value: str) -> bool:
    if len(value) < _LEAST_CHARACTERS:
        return False
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", asked) is not None


def _periods(question: str, tables: Sequence[DescribedTable]) -> Iterator[str]:
    if not any(column.data_type.startswith(_MOMENTS) for each in tables for column in each.columns):
        return
    for match in dict.fromkeys(_PERIOD.findall(question)):
        month, year = match[0].lower(), int(match[1])
        begin = date(year, _MONTHS.index(month) + 1 if month else 1, 1)
        end = _next_month(begin) if month else date(year + 1, 1, 1)
        named = f"{match[0]} {match[1]}".strip()
        yield f"for a date d, {named} is d >= DATE '{begin}' AND d < DATE '{end}'"


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)
