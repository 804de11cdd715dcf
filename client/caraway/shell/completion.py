"""Tab completion of keywords, tables, columns, functions and dot commands."""

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from caraway.shell.names import Names
from caraway_core.sqltext import comments

KEYWORDS = (
    "ALL AND AS ASC BETWEEN BY CASE CAST COUNT CROSS DESC DESCRIBE DISTINCT ELSE END EXCEPT "
    "EXISTS EXPLAIN FALSE FROM FULL GROUP HAVING ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS "
    "JOIN LEFT LIKE LIMIT MAX MIN NOT NULL OFFSET ON OR ORDER OUTER OVER PARTITION RIGHT SELECT "
    "SHOW SUM TABLES THEN TRUE UNION USING VALUES WHEN WHERE WITH"
).split()

_WORD = re.compile(r"[\w.]*$")
_AFTER_TABLE_WORD = re.compile(r"\b(?:from|join|into|update|table|describe)\s+[\w.]*$", re.I)
_DOTTED_NAME = re.compile(r"[\w.]+")
_DOT_COMMAND = re.compile(r"\s*(\.\w*)$")
_DOT_ARGUMENT = re.compile(r"\s*(\.\w+)\s+([\w.]*)$")


class ShellCompleter(Completer):
    """Completes SQL and dot commands.

    `names` may send a request, so completions must not be computed on the input thread.
    """

    def __init__(self, names: Callable[[], Names], commands: dict[str, Iterable[str]]) -> None:
        self._names = names
        self._commands = commands

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        before = document.text_before_cursor
        if command := _DOT_COMMAND.match(before):
            return _starting_with(command[1], self._commands)
        if argument := _DOT_ARGUMENT.match(before):
            return _starting_with(argument[2], self._arguments(argument[1]))
        return self._in_sql(before, document.text)

    def _arguments(self, command: str) -> Iterable[str]:
        return self._names().tables() if command == ".schema" else self._commands.get(command, ())

    def _in_sql(self, before: str, text: str) -> Iterator[Completion]:
        match = _WORD.search(before)
        word = match[0] if match else ""
        names = self._names()
        if _AFTER_TABLE_WORD.search(before):
            return _starting_with(word, [*names.tables(), *names.table_functions])
        owner, dot, _ = word.rpartition(".")
        if dot:
            columns = names.columns_by_table.get(_table_of(owner, text), ())
            qualified = [f"{owner}.{column}" for column in columns]
            return _starting_with(word, [*qualified, *names.tables()])
        keywords = KEYWORDS if word.isupper() else [keyword.lower() for keyword in KEYWORDS]
        known = [*_columns(names, text), *names.tables(), *names.functions]
        return _starting_with(word, [*known, *keywords])


def _columns(names: Names, text: str) -> list[str]:
    """Return the columns of the tables in the statement, or all columns if it has none yet."""
    words = set(_DOTTED_NAME.findall(comments.left_out(text)))
    mentioned = [table for table in names.columns_by_table if table in words]
    if not mentioned:
        return names.columns()
    return sorted({column for table in mentioned for column in names.columns_by_table[table]})


def _table_of(owner: str, text: str) -> str:
    """Return the table that an alias refers to, or the name itself if it is not an alias."""
    alias = re.escape(owner)
    named = rf"\b(?:from|join)\s+([\w.]+)\s+(?:as\s+)?{alias}\b"
    match = re.search(named, comments.left_out(text), re.I)
    return match[1] if match else owner


def _starting_with(word: str, candidates: Iterable[str]) -> Iterator[Completion]:
    start = word.lower()
    for candidate in dict.fromkeys(candidates):
        if candidate.lower().startswith(start):
            yield Completion(candidate, start_position=-len(word))
