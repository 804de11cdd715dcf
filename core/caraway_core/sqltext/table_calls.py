"""Finds the calls of table functions in SQL text, with their arguments.

The engine's parser knows no nested calls, subqueries or bare table names as arguments. So calls are
read here, where a table may be, and replaced by the names of tables before the text is planned.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext import lexer

MOST_CALLS = 16
"""The most calls in one statement, without those inside other calls."""
MOST_ARGUMENTS = 32
_DEEPEST = 4
_MOST_LOOKED_AT = 64
ArgumentKind = Literal["name", "text", "number", "boolean", "null", "parameter", "call", "query"]
ArgumentValue = str | int | float | bool | None | tuple[str, ...]

_LEAVES_FROM = frozenset(
    "SELECT WHERE GROUP HAVING ORDER LIMIT OFFSET FETCH UNION INTERSECT EXCEPT MINUS SET RETURNING "
    "WINDOW QUALIFY VALUES".split()
)
_BEFORE_EXPRESSIONS = frozenset(
    "SELECT WHERE AND OR NOT BY HAVING ON WHEN THEN ELSE CASE IN BETWEEN LIKE ILIKE DISTINCT ALL "
    "RETURNING LIMIT OFFSET".split()
)
_BEFORE_OPERANDS = frozenset(",(=<>+-*/%|&^~")
_CONSTANTS: Mapping[str, tuple[ArgumentKind, ArgumentValue]] = {
    "TRUE": ("boolean", True), "FALSE": ("boolean", False), "NULL": ("null", None)
}  # fmt: skip
_NUMBER = re.compile(r"[0-9]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_LONGEST_NUMBER = 40


@dataclass(frozen=True, slots=True)
class CallArgument:
    """An argument of a call; `name` is that of `name => value`.

    The value of a name are its parts, of a parameter its name, and of a query or a call its text.
    `where` is its place in the statement, for messages.
    """

    kind: ArgumentKind
    value: ArgumentValue
    where: str
    name: str | None = None
    call: "TableCall | None" = None


@dataclass(frozen=True, slots=True)
class TableCall:
    """A call of a table function: its text is from `start` to `end`."""

    function: str
    arguments: tuple[CallArgument, ...]
    start: int
    end: int
    where: str


def may_have(sql: str, names: Iterable[str]) -> bool:
    """Return whether a text may have one of these words, which are in lower case.

    Every statement is asked this, so it takes a microsecond for a short text and a millisecond for
    a megabyte. Words in texts and comments count, too.
    """
    lower = sql.lower()
    return any(_has_word(lower, name) for name in names)


def _has_word(text: str, word: str) -> bool:
    place = -1
    for _ in range(_MOST_LOOKED_AT):
        place = text.find(word, place + 1)
        if place < 0:
            return False
        around = text[max(0, place - 1) : place], text[place + len(word) : place + len(word) + 1]
        if not any(each.isalnum() or each == "_" for each in around):
            return True
    return True


def read(sql: str, functions: Collection[str]) -> tuple[TableCall, ...]:
    """Return the calls of these functions where a table may be, in the order of the text.

    Raises:
        InvalidQueryError: a call is not well formed, is not where a table may be, or there are
            too many.
    """
    return _Reader(sql, frozenset(functions)).calls()


def replaced(sql: str, calls: Collection[TableCall], name: Callable[[int, TableCall], str]) -> str:
    """Replace each call by the name that a function gives it."""
    pieces: list[str] = []
    done = 0
    for number, call in enumerate(calls, start=1):
        pieces += sql[done : call.start], name(number, call)
        done = call.end
    return "".join((*pieces, sql[done:]))


@dataclass(slots=True)
class _Level:
    """The state of the reader for one level of parentheses."""

    is_from: bool = False
    """True if the next comma separates tables."""
    expects_table: bool = False
    is_with: bool = False


class _Reader:
    """Reads the tokens of a text once."""

    def __init__(self, sql: str, functions: frozenset[str]) -> None:
        self._sql = lexer.plain(sql)
        self._functions = functions
        self._matches = (
            (each.lastgroup or "", each.start(), each.end(each.lastgroup or 0))
            for each in lexer.matches(self._sql)
            if each.lastgroup != "comment"
        )
        self._kind = self._text = ""
        self._start = self._end = 0
        self._following: tuple[str, int, int] | None = next(self._matches, None)
        self._step()

    def calls(self) -> tuple[TableCall, ...]:
        """Return the calls where a table may be."""
        calls: list[TableCall] = []
        levels = [_Level()]
        before, before_that = "", ""
        while self._kind:
            level, word = levels[-1], self._text.upper() if self._kind == "word" else ""
            if word and self._is_call():
                if level.expects_table:
                    self._check_place(before, before_that)
                    calls.append(self._call(1))
                    if len(calls) > MOST_CALLS:
                        raise InvalidQueryError(
                            f"the statement has more than {MOST_CALLS} searches; divide it"
                        )
                    level.expects_table = False
                    before, before_that = ")", ""
                    continue
                if not level.is_with and self._is_expression(before):
                    self._fail(f"{self._text.lower()} is a table: write it in FROM or JOIN")
            self._follow(levels, word, before)
            before, before_that = word or self._text, before
            self._step()
        return tuple(calls)

    def _follow(self, levels: list[_Level], word: str, before: str) -> None:
        """Move on over a token that is not part of a call."""
        level = levels[-1]
        expected, level.expects_table = level.expects_table, False
        match self._kind:
            case "open":
                is_inner = expected and self._text == "("
                levels.append(_Level(is_inner, is_inner))
            case "close" if len(levels) > 1:
                levels.pop()
                levels[-1].expects_table = False
            case "comma":
                level.expects_table = level.is_from
            case "end":
                levels[:] = [_Level()]
            case "word" if word == "FROM" and before != "DISTINCT":
                level.is_from = level.expects_table = True
                level.is_with = False
            case "word" if word == "JOIN":
                level.is_from = level.expects_table = True
            case "word" if word == "LATERAL" and expected:
                level.expects_table = True
            case "word" if word in _LEAVES_FROM:
                level.is_from = level.is_with = False
            case "word" if word == "WITH":
                level.is_with = True

    def _check_place(self, before: str, before_that: str) -> None:
        if before == "LATERAL":
            self._fail(
                f"{self._text.lower()} is searched once for the statement, not once for each row: "
                "write it without LATERAL"
            )
        if before == "FROM" and before_that == "DELETE":
            self._fail(f"rows cannot be deleted from {self._text.lower()}; name the dataset")

    @staticmethod
    def _is_expression(before: str) -> bool:
        return before in _BEFORE_EXPRESSIONS or before[-1:] in _BEFORE_OPERANDS

    def _is_call(self) -> bool:
        following = self._following
        return (
            self._text.lower() in self._functions
            and following is not None
            and self._sql[following[1]] == "("
        )

    def _call(self, depth: int) -> TableCall:
        function, start, where = self._text.lower(), self._start, self._where()
        if depth > _DEEPEST:
            self._fail(f"searches are nested more than {_DEEPEST} deep")
        self._step()
        self._step()
        arguments: list[CallArgument] = []
        while self._text != ")" or arguments:
            arguments.append(self._argument(function, depth))
            if len(arguments) > MOST_ARGUMENTS:
                self._fail(f"{function} has more than {MOST_ARGUMENTS} arguments")
            if self._text == ")":
                break
            if self._kind != "comma":
                self._fail_value(function)
            self._step()
        end = self._end
        self._step()
        return TableCall(function, tuple(arguments), start, end, where)

    def _argument(self, function: str, depth: int) -> CallArgument:
        name = self._name_of_argument()
        where = self._where()
        if self._kind == "word" and self._is_call():
            call = self._call(depth + 1)
            return CallArgument("call", self._sql[call.start : call.end], where, name, call)
        kind, value = self._value(function, depth)
        return CallArgument(kind, value, where, name)

    def _name_of_argument(self) -> str | None:
        following = self._following
        if self._kind != "word" or following is None:
            return None
        _, start, end = following
        if not self._sql.startswith("=>", start) and self._sql[start:end] != "=>":
            return None
        name = self._text.lower()
        self._step()
        while self._text in ("=", ">", "=>") and self._start < start + 2:
            self._step()
        return name

    def _value(self, function: str, depth: int) -> tuple[ArgumentKind, ArgumentValue]:
        word = self._text.upper() if self._kind == "word" else ""
        if word in _CONSTANTS:
            self._step()
            return _CONSTANTS[word]
        if word == "TABLE" and self._following and self._sql[self._following[1]] == "(":
            self._step()
            return "query", self._in_parentheses(function)
        match self._kind:
            case "open" if self._text == "(":
                return "query", self._in_parentheses(function)
            case "word" | "name":
                return "name", self._parts(function)
            case "text":
                return "text", self._taken(_unquoted(self._text))
            case "dollar":
                tag = self._text.index("$", 1) + 1
                return "text", self._taken(self._text[tag:-tag])
            case "placeholder":
                return "parameter", self._taken(self._text[1:])
            case "number" | "operator":
                return "number", self._number(function)
        self._fail_value(function)

    def _taken(self, value: str) -> str:
        self._step()
        return value

    def _number(self, function: str) -> int | float:
        sign = ""
        if self._kind == "operator" and self._text in "+-":
            sign = self._taken(self._text)
        if self._kind != "number" or not _NUMBER.fullmatch(self._text):
            self._fail_value(function)
        text = sign + self._text
        if len(text) > _LONGEST_NUMBER:
            self._fail_value(function)
        self._step()
        return int(text) if text.lstrip("+-").isdigit() else float(text)

    def _parts(self, function: str) -> tuple[str, ...]:
        """Return the parts of a name; as in the engine, unquoted ones are in lower case."""
        parts = [self._part(function)]
        while self._text == ".":
            self._step()
            parts.append(self._part(function))
        return tuple(parts)

    def _part(self, function: str) -> str:
        if self._kind == "word":
            return self._taken(self._text.lower())
        if self._kind != "name":
            self._fail_value(function)
        return self._taken(_unquoted(self._text))

    def _in_parentheses(self, function: str) -> str:
        """Return the text up to the closing parenthesis."""
        begin, depth = self._end, 0
        while self._kind:
            depth += (self._kind == "open") - (self._kind == "close")
            if depth == 0:
                inside = self._sql[begin : self._start].strip()
                self._step()
                return inside
            self._step()
        self._fail(f"a parenthesis of {function} is not closed")

    def _step(self) -> None:
        if self._following is None:
            self._kind = self._text = ""
            self._start = self._end = len(self._sql)
            return
        self._kind, self._start, self._end = self._following
        self._text = self._sql[self._start : self._end]
        self._following = next(self._matches, None)

    def _where(self) -> str:
        line = self._sql.count("\n", 0, self._start) + 1
        column = self._start - self._sql.rfind("\n", 0, self._start)
        return f"line {line}, column {column}"

    def _fail_value(self, function: str) -> NoReturn:
        if not self._kind:
            self._fail(f"a parenthesis of {function} is not closed")
        self._fail(
            f"an argument of {function} is not a constant; write a name, a text in single quotes, "
            "a number, true, false or a parameter such as $1"
        )

    def _fail(self, what: str) -> NoReturn:
        raise InvalidQueryError(f"{self._where()}: {what}")


def _unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)
