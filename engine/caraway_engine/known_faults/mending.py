"""Looks for known faults of the engine in a statement, and writes it so that they do not show."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from datafusion import DataFrame, SessionContext

from caraway_core.errors import InvalidQueryError
from caraway_engine.known_faults import (
    combined,
    floats,
    joining,
    moments,
    ordering,
    overflow,
    repeated,
    scopes,
    subqueries,
    syntax,
)
from caraway_engine.known_faults.scopes import KnownSchemas, Scope, Types
from caraway_engine.known_faults.syntax import Tree

logger = logging.getLogger(__name__)

_NOTHING: Mapping[str, Any] = MappingProxyType({})
# `*` of `SELECT *` and `count(*)` computes nothing.
_COMPUTES = r"[+-]|[\w)\]\"']\s*\*(?!\s*(?:,|$|from\b))"
_WORDS = (
    "sum", "min", "max", "over", "exists", "in", "any", "some", "all", "using", "natural",
    "distinct", "random", "uuid", "offset", "timestamptz", "zone", "timestamp",
)  # fmt: skip
_MAY_APPLY = re.compile(rf"{_COMPUTES}|\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_CHOOSES = re.compile(r"\b(?:where|on|having|limit|fetch)\b", re.IGNORECASE)
_OPERATORS = re.compile(r"\b(?:and|or|not|union|case)\b|[-+*/%|(]", re.IGNORECASE)
_MOST_OPERATORS = 1500
"""The parser's own tree is walked by recursion; beyond this a statement is left as it is."""


@dataclass(frozen=True, slots=True)
class Mended:
    """A statement that means the same. `is_needed` says that the other form answers wrongly.

    Otherwise it only guards against an error that may not come.
    """

    sql: str
    is_needed: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the text that it was made of."""

    sql: str
    dataframe: DataFrame


Guard = Callable[[Scope, Types], bool]
_GUARDS: tuple[Guard, ...] = (overflow.guard,)
_REMEDIES: tuple[Guard, ...] = (
    subqueries.mend,
    moments.mend,
    joining.mend_using,
    floats.mend_extremes,
    floats.mend_zeros,
    floats.mend_moving,
)


def planned(
    context: SessionContext,
    sql: str,
    plan: Callable[[str], DataFrame],
    parameters: Mapping[str, Any] = _NOTHING,
    unmeasured: frozenset[str] = frozenset(),
    known: KnownSchemas | None = None,
) -> Planned:
    """Plan a statement, in a form in which no known fault of the engine shows.

    `unmeasured` are the relations whose statistics may not hold. `known` are schemas that were
    found out over the same tables.

    Raises:
        InvalidQueryError: there is no such form.
        Exception: the engine cannot plan the statement as it is.
    """
    dataframe = plan(sql)
    mended = mend(context, sql, parameters, unmeasured, known)
    if mended is None:
        return Planned(sql, dataframe)
    try:
        other = plan(mended.sql)
        if _columns(other, mended) == _columns(dataframe, mended):
            return Planned(mended.sql, other)
        cause = "its columns would be others"
    except Exception as exc:  # Whatever the engine says of a text that no user wrote.
        cause = str(exc).splitlines()[0]
    logger.warning("a statement is not mended", extra={"sql": sql[:1000], "cause": cause[:1000]})
    if mended.is_needed:
        raise InvalidQueryError(
            "the engine would answer this statement wrongly, and no other form of it was found; "
            "docs/reference/sql-limits.md lists what it answers wrongly and what to write instead"
        )
    return Planned(sql, dataframe)


def _columns(frame: DataFrame, mended: Mended) -> list[tuple[str, pa.DataType | None]]:
    """Return what must stay as it is: a right answer may have a wider type than a wrong one."""
    schema = pa.schema(frame.schema())
    return [(field.name, None if mended.is_needed else field.type) for field in schema]


def mend(
    context: SessionContext,
    sql: str,
    parameters: Mapping[str, Any] = _NOTHING,
    unmeasured: frozenset[str] = frozenset(),
    known: KnownSchemas | None = None,
) -> Mended | None:
    """Return a statement in a form that the engine answers rightly; None where it is that itself.

    Raises:
        InvalidQueryError: there is no such form.
    """
    may_apply = _MAY_APPLY.search(sql) or (unmeasured and _CHOOSES.search(sql))
    if not may_apply or len(_OPERATORS.findall(sql)) > _MOST_OPERATORS:
        return None
    try:
        statements = syntax.parse(sql)
    except syntax.SyntaxUnknownError:
        return None
    if len(statements) != 1:
        return None
    types = Types(context, parameters, known)
    repeated.check(statements[0])
    is_needed, is_guarded = combined.mend(statements[0], types), False
    is_needed |= ordering.mend(statements[0])
    has_null_equality = joining.has_null_equality(statements[0])
    is_measured = not any(_names(each, unmeasured) for each in syntax.everything(statements[0]))
    for scope in list(scopes.scopes(statements[0])):
        names = _Names(scope)
        types.of(scope, [*overflow.candidates(scope), *floats.candidates(scope)])
        is_needed |= _applied(_REMEDIES, scope, types)
        if has_null_equality:
            is_needed |= joining.mend_equalities(scope)
        if not is_measured:
            is_needed |= floats.hide_from_statistics(scope, types)
        is_guarded |= _applied(_GUARDS, scope, types)
        names.keep(types)
    if not is_needed and not is_guarded:
        return None
    return Mended(syntax.restored(statements[0]), is_needed)


def _applied(guards: Sequence[Guard], scope: Scope, types: Types) -> bool:
    results = [guard(scope, types) for guard in guards]
    return any(results)


def _names(tree: Tree, relations: frozenset[str]) -> bool:
    """Tell if a part of a FROM names one of these relations."""
    if "Table" not in tree or not isinstance(tree["Table"], dict):
        return False
    last = tree["Table"]["name"][-1]
    return "Identifier" in last and syntax.spelled(last["Identifier"]) in relations


class _Names:
    """Sees to it that columns keep their names when what they are made of is written otherwise."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._before = [
            syntax.copied(each) if "UnnamedExpr" in each else None
            for each in scope.select["projection"]
        ]

    def keep(self, types: Types) -> None:
        items: list[Tree] = self._scope.select["projection"]
        if len(items) != len(self._before):
            return
        for item, before in zip(items, self._before, strict=True):
            if before is None or item == before:
                continue
            name = types.name(self._scope, before["UnnamedExpr"])
            if name is not None and "UnnamedExpr" in item:
                alias = syntax.identifier(name)
                new = {"ExprWithAlias": {"expr": item["UnnamedExpr"], "alias": alias}}
                syntax.replace(item, new)
