"""The rule that divides a dataset into partitions: `partition_by` in a manifest."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from caraway_core.sqltext import grammar, lexer

MAX_BUCKETS = 1_000_000

# A name in quotes is not empty.
_COLUMN = re.compile(rf'\s*(?:[^\W\d]\w*|(?!""(?!")){grammar.CLOSED_QUOTED_NAME})\s*')
_BUCKET = re.compile(r"\s*bucket\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_CLOSES = {")": "(", "]": "["}
_QUOTES = frozenset("'\"")


@dataclass(frozen=True, slots=True)
class BucketKey:
    """Partitions rows by a hash of a column; see `hashing.bucket_of`."""

    count: int
    column: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ByColumn:
    """Partitions rows by the value of a column; the values are discovered from the data."""

    column: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ByExpression:
    """Partitions rows by the value of an SQL expression, kept as text for the engine."""

    sql: str
    name: str | None = None


Term = BucketKey | ByColumn | ByExpression


@dataclass(frozen=True, slots=True)
class PartitionBy:
    """All terms of a dataset; a partition has one value for each. No terms means one partition."""

    terms: tuple[Term, ...] = ()


def keeps_together(term: Term, columns: Collection[str]) -> bool:
    """Return whether rows with equal values in these columns always share a partition."""
    if isinstance(term, ByExpression):
        return False
    return term.column in columns or (isinstance(term, BucketKey) and term.count == 1)


def parse(text: str, name: str | None = None) -> Term:
    """Read one term: `bucket(n, column)`, a column, or any other SQL expression.

    Raises:
        ValueError: it is empty, its brackets or quotes are open, or it is no proper bucket.
    """
    _check_closed(text)
    if match := _BUCKET.fullmatch(text):
        return _bucket(text, match[1], name)
    if _COLUMN.fullmatch(text):
        return ByColumn(column_name(text), name)
    return ByExpression(text.strip(), name)


def columns(text: str) -> tuple[str, ...]:
    """Read a column, or several as `(a, b)`.

    Raises:
        ValueError: it is neither, or names a column twice.
    """
    inner = text.strip()
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    pattern = _COLUMN.pattern
    if not re.fullmatch(rf"{pattern}(?:,{pattern})*", inner):
        raise ValueError(f"'{text}' is not a column; write 'a', or '(a, b)' for several")
    names = tuple(column_name(match[0]) for match in _COLUMN.finditer(inner))
    if len(set(names)) < len(names):
        raise ValueError(f"'{text}' names a column twice")
    return names


def column_name(text: str) -> str:
    """Return a column as it is called: without quotes, in the case that it is written in."""
    name = text.strip()
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _bucket(text: str, inner: str, name: str | None) -> BucketKey:
    number, _, column = inner.partition(",")
    if not re.fullmatch(r"\s*[0-9]+\s*", number) or not _COLUMN.fullmatch(column):
        raise ValueError(f"'{text}' is not a bucket; write 'bucket(n, column)'")
    digits = number.strip().lstrip("0")
    if not 1 <= len(digits) <= len(str(MAX_BUCKETS)) or int(digits) > MAX_BUCKETS:
        raise ValueError(f"'{text}' has no such number of buckets: 1 to {MAX_BUCKETS:,}")
    return BucketKey(int(digits), column_name(column), name)


def _check_closed(text: str) -> None:
    if not text.strip():
        raise ValueError("must be a column or an expression, not empty")
    opened: list[str] = []
    for token in lexer.tokens(text):
        sign = token.text[:2] if token.kind == "comment" else token.text[0]
        if token.kind in ("comment", "end"):
            raise ValueError(f"'{text}' holds '{sign}'; write one expression without it")
        if sign in _QUOTES and token.text.count(sign) % 2 != 0:
            raise ValueError(f"'{text}' has a quote that is never closed")
        if sign in _CLOSES and (not opened or opened.pop() != _CLOSES[sign]):
            raise ValueError(f"'{text}' closes a bracket that it does not open")
        if sign in _CLOSES.values():
            opened.append(sign)
    if opened:
        raise ValueError(f"'{text}' has a bracket that is never closed")
