"""Finds the calls of functions of the manifest in SQL text, with the places of their arguments.

A call is a name with a parenthesis where an expression or a table may stand. The same name as an
alias, as that of a CTE, after a schema, or within a string or a comment is none.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from caraway_core.sqltext import grammar, lexer

_QUERIES = frozenset({"DELETE", "MERGE", "SELECT", "UPDATE"})
_BEFORE_EXPRESSIONS = frozenset(
    "ALL AND BETWEEN BOTH BY CASE DISTINCT DIV ELSE ESCAPE FOR FROM HAVING ILIKE IN LEADING LIKE "
    "LIMIT NOT OFFSET ON OR PLACING QUALIFY REGEXP RETURNING RLIKE SELECT THEN TO TRAILING WHEN "
    "WHERE XOR ZONE".split()
)
_ENDS_SELECT_LIST = frozenset(
    "EXCEPT FETCH FROM GROUP HAVING INTERSECT INTO LIMIT MINUS OFFSET ORDER QUALIFY UNION WHERE "
    "WINDOW".split()
)
_ENDS_FROM = _ENDS_SELECT_LIST - {"FROM", "INTO"} | {"RETURNING", "SELECT", "SET", "VALUES"}
_AFTER_TABLES = _ENDS_FROM | frozenset(
    "ANTI ASOF CROSS FOR FULL GLOBAL INNER JOIN LATERAL LEFT NATURAL ON OUTER RIGHT SEMI "
    "TABLESAMPLE USING WHEN".split()
)
"""Words that may follow a table, and that are not its alias."""
_WORDS = _ENDS_FROM | _ENDS_SELECT_LIST | _QUERIES | {"JOIN", "LATERAL", "USING", "WITH"}
"""Words that determine the text behind them."""
_BEGIN_ITEMS = ("SELECT", "ALL", "DISTINCT")
_READ = ("word", "operator", "open", "other")
"""The kinds of tokens whose text matters."""
_OPENING = re.compile(rf"(?:\s++|{grammar.COMMENT})*+\(", re.VERBOSE | re.DOTALL)
_OF_A_TYPE = re.compile(r"\s+TIME\b", re.IGNORECASE)
_NOT_OF_SCALARS = frozenset({"FILTER", "IGNORE", "OVER", "RESPECT", "WITHIN"})


@dataclass(slots=True)
class FunctionArgument:
    """The place of an argument, and the calls inside of it."""

    start: int
    end: int
    calls: "list[FunctionCall]" = field(default_factory=list)


@dataclass(slots=True)
class FunctionCall:
    """A call: its text is from `start` to `end`.

    A table `has_alias` if a name follows it. `is_item` says that the call alone is an item of a
    select list, so that it names a column. `follower` is a word after it that only aggregates and
    window functions take.
    """

    name: str
    start: int
    end: int
    is_table: bool
    is_item: bool = False
    has_alias: bool = False
    follower: str = ""
    arguments: list[FunctionArgument] = field(default_factory=list)


@dataclass(slots=True)
class _Level:
    """The state of the finder for one level of brackets."""

    call: FunctionCall | None = None
    calls: list[FunctionCall] = field(default_factory=list)
    has_tokens: bool = False
    is_query: bool = False
    is_from: bool = False
    """True if the next comma separates tables."""
    expects_table: bool = False
    names_ctes: bool = False
    is_list: bool = False
    """True if this is inside a select list."""
    begins_item: bool = False
    item: FunctionCall | None = None
    """The call that is the whole item so far."""


def find(sql: str, names: Collection[str]) -> list[FunctionCall]:
    """Return the outermost calls of functions with these names, in lower case, in order.

    The places are those in `lexer.plain(sql)`. A call whose parenthesis is not closed is left out:
    the parser says what is wrong with the text.
    """
    return _Finder(lexer.plain(sql), names).found()


class _Finder:
    """Reads the tokens of a text once. Most of them only end what came before."""

    def __init__(self, sql: str, names: Collection[str]) -> None:
        self._sql = sql
        self._names = names
        self._levels = [_Level()]
        self._before = ""
        """The kind of the token before, and its text in upper case if it is one of these."""
        self._before_text = ""
        self._named: FunctionCall | None = None
        """The call whose parenthesis is the next token."""
        self._ended: FunctionCall | None = None
        """The call that the token before has closed."""

    def found(self) -> list[FunctionCall]:
        """Return the outermost calls of the text."""
        sql = self._sql
        for match in lexer.matches(sql):
            kind = match.lastgroup or ""
            if kind == "comment":
                continue
            start, end = match.start(), match.end(kind)
            level = self._levels[-1]
            text = ""
            if kind in _READ:
                text = sql[start:end].upper()
            if self._ended is not None:
                self._look_behind(kind, text)
            if kind == "comma":
                if level.call is not None:
                    self._end_argument(level, start)
                    level.call.arguments.append(FunctionArgument(end, end))
                level.expects_table = level.is_from
                level.item, level.begins_item = None, level.is_list
            elif kind == "word":
                self._word(level, text, start, end)
            elif kind == "open":
                self._open(level, text, end)
            elif kind == "close":
                self._close(level, start, end)
            elif kind == "end" and len(self._levels) == 1:
                self._levels[0] = _Level(calls=level.calls)
            elif kind != "name" or not self._names_call(
                level, _unquoted(sql[start:end]), start, end
            ):
                level.expects_table = False
                self._leave_call(level)
            level.has_tokens = True
            self._before, self._before_text = kind, text
        return self._levels[0].calls

    def _word(self, level: _Level, word: str, start: int, end: int) -> None:
        if self._names_call(level, word.lower(), start, end):
            return
        expected, level.expects_table = level.expects_table, False
        if word in _WORDS:
            self._follow(level, word, end, expected=expected)
        if not (level.begins_item and word in _BEGIN_ITEMS):
            self._leave_call(level)

    def _names_call(self, level: _Level, name: str, start: int, end: int) -> bool:
        """Return whether a name is called, and take the call."""
        if name not in self._names or _OPENING.match(self._sql, end) is None:
            return False
        if not (level.expects_table or self._expects(level)):
            return False
        call = self._named = FunctionCall(name, start, end, level.expects_table)
        if level.item is None and level.begins_item:
            call.is_item, level.item = True, call
        else:
            self._leave_call(level)
        level.begins_item = level.expects_table = False
        return True

    def _expects(self, level: _Level) -> bool:
        """Return whether an expression may begin here."""
        match self._before:
            case "word":
                return self._before_text in _BEFORE_EXPRESSIONS
            case "comma":
                return not level.names_ctes
            case "operator":
                return self._before_text != "::"
            case "other":
                # Of a map: {'key': f(x)}.
                return self._before_text == ":"
        return self._before in ("", "open")

    def _open(self, level: _Level, text: str, end: int) -> None:
        call, self._named = self._named, None
        if call is not None:
            call.arguments.append(FunctionArgument(end, end))
            self._levels.append(_Level(call=call, has_tokens=True))
            return
        expected, level.expects_table = level.expects_table, False
        self._leave_call(level)
        is_inner = expected and text == "("
        self._levels.append(_Level(is_from=is_inner, expects_table=is_inner))

    def _close(self, level: _Level, start: int, end: int) -> None:
        level.expects_table = False
        if len(self._levels) == 1:
            self._leave_call(level)
            return
        self._levels.pop()
        below = self._levels[-1]
        if (call := level.call) is None:
            below.calls += level.calls
            return
        self._end_argument(level, start)
        call.end = end
        below.calls.append(call)
        self._ended = call

    @staticmethod
    def _end_argument(level: _Level, start: int) -> None:
        if level.call is not None:
            argument = level.call.arguments[-1]
            argument.end, argument.calls = start, level.calls
            level.calls = []

    def _follow(self, level: _Level, word: str, end: int, *, expected: bool) -> None:
        """Move on over a keyword."""
        is_distinct = self._before == "word" and self._before_text == "DISTINCT"
        if word in _ENDS_SELECT_LIST and not is_distinct:
            # A call stays the whole item.
            level.is_list, level.item = False, None
        if word == "FROM" and not is_distinct and (level.is_query or not level.has_tokens):
            level.is_query = level.is_from = level.expects_table = True
            level.names_ctes = False
        elif word in ("JOIN", "USING") and level.is_query:
            level.is_from = level.expects_table = True
        elif word == "LATERAL" and expected:
            level.expects_table = True
        elif word in _ENDS_FROM:
            level.is_from = False
        if word in _QUERIES:
            level.is_query, level.names_ctes = True, False
            level.is_list = level.begins_item = word == "SELECT"
        elif word == "VALUES":
            level.names_ctes = False
        elif word == "WITH" and not level.is_query:
            level.names_ctes = _OF_A_TYPE.match(self._sql, end) is None

    def _look_behind(self, kind: str, text: str) -> None:
        """Note what follows a call that has ended."""
        call, self._ended = self._ended, None
        if call is None:
            return
        word = text if kind == "word" else ""
        if call.is_table:
            call.has_alias = kind == "name" or (word != "" and word not in _AFTER_TABLES)
        elif word in _NOT_OF_SCALARS:
            call.follower = word

    @staticmethod
    def _leave_call(level: _Level) -> None:
        """Note that the item of a select list is more than a call."""
        level.begins_item = False
        if level.item is not None:
            level.item.is_item, level.item = False, None


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])
