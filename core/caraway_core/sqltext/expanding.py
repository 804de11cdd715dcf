"""Replaces the calls of functions of the manifest by their bodies, before a text is planned.

Each argument is cast to the type of its parameter, and each body to the type that the function
returns. An argument may be written several times, so it must not give another value each time.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NoReturn

from caraway_core.errors import InvalidQueryError
from caraway_core.loading import registry
from caraway_core.sqltext import (
    builtin_functions,
    constants,
    function_bodies,
    function_calls,
    lexer,
    searching,
)
from caraway_core.sqltext.function_calls import FunctionArgument, FunctionCall
from caraway_core.sqltext.sql_functions import FunctionParameter, SqlFunction

MOST_ADDED = 1024 * 1024
"""The most characters that calls may add to a text: nested ones may double it with each level."""
MOST_IN_BODY = 64 * 1024
_DEEPEST = 32
_KEPT = 256
_LONGEST_KEPT = 16 * 1024
_IN_WORDS = re.compile(r"[\w@#$]")


class FunctionBodyError(Exception):
    """The body of a function cannot be used."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message


@dataclass(frozen=True, slots=True)
class ExpandedSql:
    """A text without calls, and the functions that it called."""

    sql: str
    called: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Linked:
    """A function whose body calls no other one: texts, and the parameters between them.

    Searches take constants as they are, so the arguments of `plain` places are not cast.
    """

    function: SqlFunction
    texts: tuple[str, ...]
    names: tuple[str, ...]
    plain: tuple[bool, ...]


class Expander:
    """The functions of one manifest."""

    def __init__(self, functions: Iterable[SqlFunction] = ()) -> None:
        """Take functions.

        Raises:
            FunctionBodyError: one cannot be used, or calls itself.
        """
        self.functions = {each.name.lower(): each for each in functions}
        self._linked: dict[str, _Linked] = {}
        self._kept: OrderedDict[str, ExpandedSql] = OrderedDict()
        self._lock = Lock()  # Long texts are expanded in threads.
        words = "|".join(sorted(map(re.escape, self.functions)))
        self._calls = re.compile(rf"(?<![\w.])(?:{words})[\"`]?[\s(/-]", re.IGNORECASE)
        for name in self.functions:
            self._link(name, ())

    def __bool__(self) -> bool:
        return bool(self.functions)

    def may_call(self, sql: str) -> bool:
        """Return whether a text may call a function; microseconds for a short text."""
        return bool(self.functions) and self._calls.search(sql) is not None

    def expanded(self, sql: str, most_added: int = MOST_ADDED) -> ExpandedSql:
        """Return a text in which bodies take the place of calls.

        Raises:
            InvalidQueryError: a call is wrong, or calls add more characters than they may.
        """
        if not self.may_call(sql):
            return ExpandedSql(sql)
        with self._lock:
            if (known := self._kept.get(sql)) is not None:
                self._kept.move_to_end(sql)
                return known
        expanded_sql = _Expansion(self._linked, sql, most_added).made()
        if len(sql) <= _LONGEST_KEPT and len(expanded_sql.sql) <= _LONGEST_KEPT:
            with self._lock:
                self._kept[sql] = expanded_sql
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return expanded_sql

    def _link(self, name: str, chain: tuple[str, ...]) -> None:
        if name in self._linked:
            return
        function = self.functions[name]
        if name in chain:
            ring = " -> ".join((*chain[chain.index(name) :], name))
            raise FunctionBodyError(function.name, f"calls itself ({ring}); functions cannot")
        try:
            body = function_bodies.prepared(function)
            for other in _called(function_calls.find(body, self.functions)):
                self._link(other, (*chain, name))
            body = _Expansion(self._linked, body, MOST_IN_BODY).made().sql
        except ValueError as exc:
            raise FunctionBodyError(function.name, f"its body {exc}") from exc
        except InvalidQueryError as exc:
            raise FunctionBodyError(function.name, f"its body: {exc.message}") from exc
        linked = self._linked[name] = _cut(function, _typed(function, body))
        for parameter in function.parameters:
            if parameter.name.lower() not in linked.names:
                message = f"its body does not use the parameter '{parameter.name}'; remove it"
                raise FunctionBodyError(function.name, message)


def _called(calls: Sequence[FunctionCall]) -> set[str]:
    found = {call.name for call in calls}
    for call in calls:
        for argument in call.arguments:
            found |= _called(argument.calls)
    return found


def _typed(function: SqlFunction, body: str) -> str:
    if not function.is_table:
        return function.returns.cast_of(body) if function.returns is not None else f"({body})"
    if not function.columns:
        return f"({body})"
    columns = ", ".join(
        f"{each.cast.cast_of(quoted(each.name))} AS {quoted(each.name)}"
        for each in function.columns
    )
    return f"(SELECT {columns} FROM ({body}) AS {quoted(function.name)})"


def _cut(function: SqlFunction, body: str) -> _Linked:
    texts: list[str] = []
    names: list[str] = []
    plain: list[bool] = []
    done, before, levels = 0, "", [False]
    for token in lexer.significant(body):
        match token.kind:
            case "open":
                levels.append(before in searching.FUNCTIONS)
            case "close":
                levels.pop()
            case "placeholder":
                texts.append(body[done : token.start])
                names.append(token.text[1:])
                plain.append(levels[-1])
                done = token.end
        before = token.text.lower()
    return _Linked(function, (*texts, body[done:]), tuple(names), tuple(plain))


class _Expansion:
    """The expansion of one text."""

    def __init__(self, linked: Mapping[str, _Linked], sql: str, most_added: int) -> None:
        self._linked = linked
        self._sql = lexer.plain(sql)
        self._left = most_added
        self._most_added = most_added
        self._found: set[str] = set()

    def made(self) -> ExpandedSql:
        calls = function_calls.find(self._sql, self._linked)
        if not calls:
            return ExpandedSql(self._sql)
        if "?" in self._sql and (numbered := _numbered(self._sql)) != self._sql:
            # An argument that is written twice would be two values.
            self._sql = numbered
            calls = function_calls.find(self._sql, self._linked)
        sql = self._text(0, len(self._sql), calls, 1)
        return ExpandedSql(sql, frozenset(self._found))

    def _text(self, start: int, end: int, calls: Sequence[FunctionCall], depth: int) -> str:
        pieces: list[str] = []
        for call in calls:
            pieces += self._sql[start : call.start], self._called(call, depth)
            start = call.end
        pieces.append(self._sql[start:end])
        return "".join(pieces)

    def _called(self, call: FunctionCall, depth: int) -> str:
        linked = self._linked[call.name]
        function = linked.function
        self._found.add(function.name)
        if depth > _DEEPEST:
            self._fail(call, function, f"calls are nested more than {_DEEPEST} deep")
        if call.is_table is not function.is_table:
            self._fail(
                call,
                function,
                "it is a table: write it in FROM or JOIN"
                if function.is_table
                else "it gives one value for each row: write it where an expression stands",
            )
        if call.follower:
            self._fail(call, function, f"it is no aggregate, so {call.follower} cannot follow it")
        values = self._values(call, function, depth)
        made = [linked.texts[0]]
        for name, is_plain, text in zip(linked.names, linked.plain, linked.texts[1:], strict=True):
            made += values[name][is_plain], text
        self._left -= sum(map(len, made))
        if self._left < 0:
            raise InvalidQueryError(
                f"{self._where(call)}: {function.name}: the calls become more than "
                f"{self._most_added:,} characters; use fewer, or compute inner ones in a subquery"
            )
        text = "".join(made)
        if call.is_table:
            return text if call.has_alias else f"{text} AS {quoted(function.name.lower())}"
        return f"{text} AS {self._title(call)}" if call.is_item else text

    def _title(self, call: FunctionCall) -> str:
        """Return the name of a column: the call as it is written."""
        return quoted(" ".join(self._sql[call.start : call.end].split()))

    def _values(
        self, call: FunctionCall, function: SqlFunction, depth: int
    ) -> dict[str, tuple[str, str]]:
        """Return the text for each parameter: as a value of its type, and as it is given."""
        given = self._given(call, function, depth)
        uses = self._linked[call.name].names
        values: dict[str, tuple[str, str]] = {}
        for parameter in function.parameters:
            name = parameter.name.lower()
            text = given.get(name)
            if text is None:
                if parameter.default is None:
                    self._fail(call, function, f"its argument `{parameter.name}` is missing")
                text = parameter.default
            elif function.is_table and not constants.is_constant(text):
                self._fail(
                    call,
                    function,
                    f"its argument `{parameter.name}` must be a constant or a parameter such as "
                    "$1, because the function is run once, not for each row",
                )
            elif uses.count(name) > 1:
                self._check_random(call, function, parameter, text)
            values[name] = parameter.cast.cast_of(text), text
        return values

    def _given(self, call: FunctionCall, function: SqlFunction, depth: int) -> dict[str, str]:
        names = [each.name.lower() for each in function.parameters]
        given: dict[str, str] = {}
        is_named = False
        arguments = call.arguments
        if len(arguments) == 1 and not self._is_written(arguments[0]):
            arguments = []
        for place, argument in enumerate(arguments):
            if not self._is_written(argument):
                self._fail(call, function, "an argument is empty")
            name, start = self._name_of(argument)
            text = function_bodies.cleaned(
                self._text(start, argument.end, argument.calls, depth + 1)
            )
            self._check(call, function, text)
            if name is not None:
                is_named = True
                if name not in names:
                    known = registry.unknown("argument", name, names)
                    self._fail(call, function, known)
            elif is_named:
                self._fail(call, function, "arguments with a name come last")
            elif place >= len(names):
                self._fail(call, function, "it has too many arguments")
            key = names[place] if name is None else name
            if key in given:
                self._fail(call, function, f"its argument `{key}` is given twice")
            given[key] = text
        return given

    def _is_written(self, argument: FunctionArgument) -> bool:
        return bool(function_bodies.cleaned(self._sql[argument.start : argument.end]))

    def _name_of(self, argument: FunctionArgument) -> tuple[str | None, int]:
        """Return the name of `name => value`, and where the value begins."""
        tokens = lexer.significant(self._sql[argument.start : argument.end])
        first, second, third = next(tokens, None), next(tokens, None), next(tokens, None)
        if first is None or second is None or first.kind not in ("word", "name"):
            return None, argument.start
        if second.text == "=>":
            end = second.end
        elif third is not None and second.text + third.text in ("=>", ":="):
            end = third.end
        else:
            return None, argument.start
        text = first.text
        name = text.lower() if first.kind == "word" else text[1:-1]
        return name, argument.start + end

    def _check(self, call: FunctionCall, function: SqlFunction, text: str) -> None:
        first = lexer.first_word(text)
        if text.endswith("*") or first in ("ALL", "DISTINCT"):
            what = "*" if text.endswith("*") else first
            self._fail(call, function, f"it is no aggregate: {what} cannot be an argument")

    def _check_random(
        self, call: FunctionCall, function: SqlFunction, parameter: FunctionParameter, text: str
    ) -> None:
        if (name := function_bodies.called(text, builtin_functions.RANDOM)) is not None:
            self._fail(
                call,
                function,
                f"its argument `{parameter.name}` calls {name}(), and the body uses it more than "
                "once, each time with another value; compute it in a subquery first",
            )

    def _fail(self, call: FunctionCall, function: SqlFunction, what: str) -> NoReturn:
        raise InvalidQueryError(
            f"{self._where(call)}: {function.name}: {what}; it is {function.signature}"
        )

    def _where(self, call: FunctionCall) -> str:
        line = self._sql.count("\n", 0, call.start) + 1
        column = call.start - self._sql.rfind("\n", 0, call.start)
        return f"line {line}, column {column}"


def quoted(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def _numbered(sql: str) -> str:
    """Write each `?` as `$1`, `$2`, ..., unless a text has named parameters, too."""
    pieces: list[str] = []
    count = done = 0
    for match in lexer.matches(sql):
        if match.lastgroup != "placeholder":
            continue
        if sql[match.start() : match.end("placeholder")] != "?":
            return sql
        count += 1
        space = " " if _IN_WORDS.match(sql, match.start() + 1) else ""
        pieces += sql[done : match.start()], f"${count}{space}"
        done = match.start() + 1
    return "".join((*pieces, sql[done:]))
