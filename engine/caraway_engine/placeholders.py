"""Finds the placeholders of a statement and brings every spelling to the one DataFusion binds.

Values are never put into the text: `:name` becomes `$name`, `?` becomes `$1`, `$2`, ...
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from caraway_core.errors import ParametersError

# Order matters: what may contain a placeholder's characters is consumed first.
_TOKEN = re.compile(
    r"""
      '(?:[^']++|'')*+'
    | "(?:[^"]++|"")*+"
    | --[^\n]*
    | /\*.*?\*/
    | \$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?P=tag)\$
    | \$\$.*?\$\$
    | ::
    | (?<![\w\])"'$]):(?P<colon>[A-Za-z_]\w*)
    | \$(?P<dollar>\w+)
    | \?(?P<numbered>\d+)(?=(?P<after>\w)?)
    | (?P<mark>\?(?=(?P<glued>\w)?))
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Placeholders:
    """A statement in the engine's spelling, and the names of the values that it needs."""

    sql: str
    names: frozenset[str]

    def check(self, given: Iterable[str]) -> None:
        """Compare what the statement needs with what was given.

        Raises:
            ParametersError: a value is missing, or one was given that nothing uses.
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


@lru_cache(maxsize=1024)
def find(sql: str) -> Placeholders:
    """Rewrite the placeholders of `sql`.

    Raises:
        ParametersError: `?` and `$1` are mixed.
    """
    names: set[str] = set()
    marks = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal marks
        if match["mark"]:
            marks += 1
            names.add(str(marks))
            return f"${marks} " if match["glued"] else f"${marks}"
        name = match["colon"] or match["dollar"] or match["numbered"]
        if not name:
            return match[0]
        names.add(name)
        return f"${name} " if match["after"] else f"${name}"

    rewritten = _TOKEN.sub(replace, sql)
    if marks and len(names) != marks:
        raise ParametersError("a statement uses either ? or named and numbered parameters")
    return Placeholders(rewritten, frozenset(names))


def by_name(values: Mapping[str, object] | list[object]) -> dict[str, object]:
    """Key values by placeholder name; a leading `$` or `:` is dropped, lists count from 1."""
    if isinstance(values, list):
        return {str(position): value for position, value in enumerate(values, start=1)}
    return {name.lstrip("$:"): value for name, value in values.items()}


def _natural(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (0, name)


def _spell(names: Iterable[str]) -> str:
    return ", ".join(f"${name}" for name in names)


def _given(given: set[str]) -> str:
    if not given:
        return "none was given."
    return f"given: {_spell(sorted(given, key=_natural))}."
