"""Draws from a seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, TypeVar

Kind: TypeAlias = Literal[
    "int", "big", "decimal", "double", "text", "bool", "date", "stamp", "time", "list", "struct"
]
NUMBERS: tuple[Kind, ...] = ("int", "big", "decimal", "double")
SCALARS: tuple[Kind, ...] = (*NUMBERS, "text", "bool", "date", "stamp", "time")
KINDS: tuple[Kind, ...] = (*SCALARS, "list", "struct")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Column:
    """A column as a statement names it."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Relation:
    """An item of FROM, and its columns."""

    sql: str
    columns: tuple[Column, ...]
    is_join: bool = False

    def named(self, alias: str) -> "Relation":
        """Return this relation with columns that are qualified by an alias."""
        columns = tuple(replace(each, name=f"{alias}.{each.name}") for each in self.columns)
        return Relation(f"{self.sql} AS {alias}", columns)


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT without an order, and its columns."""

    sql: str
    columns: tuple[Column, ...]


class MakesSelect(Protocol):
    """Draws a SELECT, of columns of these kinds if any are given."""

    def __call__(
        self,
        draw: "Draw",
        depth: int,
        kinds: Sequence[Kind] | None = None,
        outer: Sequence[Column] = (),
    ) -> Select: ...


class MakesSource(Protocol):
    """Draws an item of FROM."""

    def __call__(self, draw: "Draw", depth: int) -> Relation: ...


@dataclass(frozen=True, slots=True)
class Grammar:
    """Makes the parts of statements that contain each other: SELECTs and items of FROM."""

    select: MakesSelect
    source: MakesSource


class Draw:
    """Choices from a seed, and names that no other part of the statement has."""

    def __init__(self, seed: int, grammar: Grammar) -> None:
        self._random = random.Random(seed)
        self._aliases = 0
        self._grammar = grammar

    def select(
        self, depth: int, kinds: Sequence[Kind] | None = None, outer: Sequence[Column] = ()
    ) -> Select:
        """Draw a SELECT; its condition may compare with columns of the statement around it."""
        return self._grammar.select(self, depth, kinds, outer)

    def source(self, depth: int) -> Relation:
        """Draw an item of FROM."""
        return self._grammar.source(self, depth)

    def one(self, values: Sequence[_T]) -> _T:
        return self._random.choice(values)

    def some(self, values: Sequence[_T], least: int, most: int) -> list[_T]:
        """Return several of the values, each at most once."""
        most = min(most, len(values))
        return self._random.sample(values, self._random.randint(min(least, most), most))

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def happens(self, share: float) -> bool:
        return self._random.random() < share

    def alias(self) -> str:
        """Return a new alias of a relation."""
        self._aliases += 1
        return f"r{self._aliases}"
