"""The nodes of a text query. Leaves hold terms as an index has them."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Occurrence(Enum):
    """The effect of a clause on the rows that a query finds."""

    SHOULD = "should"
    MUST = "must"
    MUST_NOT = "must not"


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """Rows with a term."""

    term: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """Rows with some terms next to each other."""

    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prefix:
    """Rows with a term that begins with the prefix, or that equals the stem of the typed word."""

    prefix: str
    stem: str


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """Rows with a term within some edits; `edits` is 1 or 2."""

    term: str
    edits: int


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a group."""

    occurrence: Occurrence
    node: "QueryNode"


@dataclass(frozen=True, slots=True)
class Group:
    """Rows with all that must be there, or else with any that should, and with none that must not.

    A group of nothing, and one of nothing but what must not be there, finds no row.
    """

    clauses: tuple[Clause, ...]


Leaf = QueryTerm | Phrase | Prefix | Fuzzy
QueryNode = Leaf | Group


def leaves(node: QueryNode) -> Iterator[Leaf]:
    """The leaves of a query, in its order."""
    if isinstance(node, Group):
        for clause in node.clauses:
            yield from leaves(clause.node)
    else:
        yield node


@dataclass(frozen=True, slots=True)
class CountedTerm:
    """The key of one term, or of a set that counts as one term, in `TextStatistics`.

    `edits` is 0 for a term, 1 or 2 for all terms at that distance; `stem` is that of a prefix.
    """

    term: str
    edits: int = 0
    is_prefix: bool = False
    stem: str = ""


def counted(leaf: Leaf) -> tuple[CountedTerm, ...]:
    """Return the terms of a leaf that are counted, in the order in which it is scored."""
    match leaf:
        case QueryTerm():
            return (CountedTerm(leaf.term),)
        case Phrase():
            return tuple(CountedTerm(term) for term in leaf.terms)
        case Prefix():
            return (CountedTerm(leaf.prefix, is_prefix=True, stem=leaf.stem),)
        case Fuzzy():
            return tuple(CountedTerm(leaf.term, edits) for edits in range(leaf.edits + 1))
