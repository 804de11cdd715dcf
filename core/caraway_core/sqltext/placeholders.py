"""Finds the placeholders of a statement, and rewrites them to the form that DataFusion binds.

Values are bound, not inserted into the text: `:name` becomes `$name`, `?` becomes `$1`, `$2`, ...

DataFusion assumes that a bare `$1` in the VALUES of an INSERT or in the SET of an UPDATE has the
type of its column, and stores values of other types without a cast, so that they are read as
garbage. Therefore they become expressions of unknown type, which it casts.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from caraway_core.errors import ParametersError
from caraway_core.sqltext import lexer, writing

_SIGNS = "$?:"
_IN_WORDS = re.compile(r"[\w@#$]")
"""Characters that may touch `?`, but not `$1`, which they would extend or turn into a string."""
_MOST_DIGITS = 9
_LONGEST_KEPT = 16 * 1024
"""Longer texts are not cached: a thousand of the longest would need gigabytes."""


@dataclass(frozen=True, slots=True)
class Placeholders:
    """A statement with rewritten placeholders, and the names of the required values."""

    sql: str
    names: frozenset[str]

    def check(self, given: Iterable[str]) -> None:
        """Check that the given values match the placeholders.

        Raises:
            ParametersError: a value is missing, or is not used by the statement.
        """
        given = set(given)
        if missing := sorted(self.names - given, key=_natural):
            raise ParametersError(
                f"no value for parameter {_spell(missing)}; "
                f"{_given(given)} Add the missing ones to `parameters`."
            )
        if extra := sorted(given - self.names, key=_natural):
            raise ParametersError(
                f"the statement does not use parameter {_spell(extra)}; "
                + (
                    f"it uses {_spell(sorted(self.names, key=_natural))}."
                    if self.names
                    else "it has no placeholders; write $name, :name, $1 or ? for a value."
                )
            )


def find(sql: str) -> Placeholders:
    """Rewrite the placeholders of `sql`.

    Raises:
        ParametersError: `?` and `$1` are mixed.
    """
    return _kept(sql) if len(sql) <= _LONGEST_KEPT else _found(sql)


def bare(sql: str) -> Placeholders:
    """Rewrite the placeholders of `sql` so that all have types for DataFusion; not to be run.

    Raises:
        ParametersError: `?` and `$1` are mixed.
    """
    return _found(sql, has_types=True)


def _found(sql: str, *, has_types: bool = False) -> Placeholders:
    if not any(sign in sql for sign in _SIGNS):
        return Placeholders(sql, frozenset())
    names: set[str] = set()
    pieces: list[str] = []
    marks = done = 0
    written = _WrittenValues() if writing.may_change(sql) and not has_types else None
    for token in lexer.matches(sql):
        if token.lastgroup != "placeholder":
            if written is not None:
                written.pass_token(token)
            continue
        start, end = token.start(), token.end("placeholder")
        name = sql[start + 1 : end]
        if not name:
            marks += 1
            name = str(marks)
        names.add(name)
        if written is not None:
            pieces += sql[done:start], written.untyped(f"${name}")
            done = end
        elif sql[start] != "$":
            before = sql[start - 1 : start]
            left = " " if before == "?" or _IN_WORDS.match(before) else ""
            right = " " if _IN_WORDS.match(sql, end) else ""
            pieces += sql[done:start], f"{left}${name}{right}"
            done = end
    if marks and len(names) != marks:
        raise ParametersError("a statement uses either ? or named and numbered parameters")
    return Placeholders("".join((*pieces, sql[done:])), frozenset(names))


def replaced(sql: str, by_name: Mapping[str, str]) -> str:
    """Put other expressions in place of some placeholders of a text that `find` returned."""
    pieces: list[str] = []
    done = 0
    for token in lexer.matches(sql):
        end = token.end("placeholder")
        if token.lastgroup == "placeholder" and (
            other := by_name.get(sql[token.start() + 1 : end])
        ):
            pieces += sql[done : token.start()], other
            done = end
    return "".join((*pieces, sql[done:]))


class _WrittenValues:
    """Finds the placeholders that are new values of an UPDATE, in a statement that writes."""

    def __init__(self) -> None:
        self._is_in_set = False
        self._depth = 0

    def pass_token(self, token: re.Match[str]) -> None:
        """Note a token that is not a placeholder."""
        match token.lastgroup:
            case "open":
                self._depth += 1
            case "close":
                self._depth -= 1
            case "word":
                word = token[0].rstrip().upper()
                if word == "UPDATE":
                    self._is_in_set = True
                elif word == "WHERE" and self._depth == 0:
                    self._is_in_set = False

    def untyped(self, placeholder: str) -> str:
        """Return an expression of the same value whose type does not come from its column."""
        if self._is_in_set:
            return f"(CASE WHEN true THEN {placeholder} END)"
        return f"({placeholder})"


_kept = lru_cache(maxsize=1024)(_found)


def by_name(values: Mapping[str, object] | list[object]) -> dict[str, object]:
    """Return values by placeholder name; a leading `$` or `:` is dropped, lists count from 1.

    Raises:
        ParametersError: a value is an object.
    """
    if isinstance(values, list):
        named = {str(position): value for position, value in enumerate(values, start=1)}
    else:
        named = {name.lstrip("$:"): value for name, value in values.items()}
    for name, value in named.items():
        if isinstance(value, dict):
            raise ParametersError(
                f"parameter ${name[:100]}: an object cannot be bound; use null, true, false, a "
                "number, a string, or an array of one of these"
            )
    return named


def number_of(name: str) -> int | None:
    """Return the number of a placeholder such as $1; None if it has a name."""
    # Names come from clients: other digits and thousands of them are not numbers.
    is_number = name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS
    return int(name) if is_number else None


def _natural(name: str) -> tuple[int, str]:
    number = number_of(name)
    return (0, name) if number is None else (number, "")


def _spell(names: Iterable[str]) -> str:
    return ", ".join(f"${name}" for name in names)


def _given(given: set[str]) -> str:
    if not given:
        return "none was given."
    return f"given: {_spell(sorted(given, key=_natural))}."
