"""Compares an answer with that of DuckDB."""

from collections import Counter
from dataclasses import dataclass

from caraway_core.errors import InvalidQueryError, QueryError
from tests.differential import judging
from tests.differential.comparing import Outcome
from tests.differential.judging import Judge
from tests.differential.typed.statements import Typed

SAME, REFUSED, REFUSED_BY_DUCKDB = "same", "refused", "refused by DuckDB"
ALIKE = frozenset({SAME, REFUSED, REFUSED_BY_DUCKDB})
"""Verdicts that fail no test."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word for how two answers compare, and their difference."""

    word: str
    text: str = ""


def verdict(found: Typed, ours: Outcome, judge: Judge) -> Verdict:
    """Compare an answer with that of DuckDB."""
    if isinstance(ours, InvalidQueryError):
        return Verdict(REFUSED, ours.message)
    if isinstance(ours, QueryError):
        return Verdict("failed", ours.message)
    theirs = judge.in_order(found.sql)
    if theirs is None:
        return Verdict(REFUSED_BY_DUCKDB)
    listed = judging.listed(ours)
    if (counted := Counter(listed)) != (other := Counter(theirs)):
        more, fewer = _few(counted - other), _few(other - counted)
        return Verdict("wrong", f"{len(listed)} rows of {len(theirs)}: {more}, not {fewer}")
    if _keys(listed, found.places) != _keys(theirs, found.places):
        return Verdict("in another order")
    return Verdict(SAME)


def _few(rows: Counter[tuple[str, ...]]) -> str:
    return str(list(rows.items())[:2])


def _keys(rows: list[tuple[str, ...]], places: tuple[int, ...]) -> list[tuple[str, ...]]:
    return [tuple(row[place] for place in places) for row in rows]
