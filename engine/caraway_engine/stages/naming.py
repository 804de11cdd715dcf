"""Gives the columns that meet in a join different names.

A fragment refers to columns by position, but the engine's physical optimizer looks a column up by
its bare name when it moves a filter from an operator to its input. Below a join whose inputs share
a name, the filter then lands on the other column. See apache/datafusion#25244.

The columns of an exchange have names that are unique within the statement. Other columns keep the
names of their tables, or have names that the engine derives from an expression. Where two of them
would meet in a join, those of one side are renamed.
"""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

from substrait.algebra_pb2 import Expression, Rel
from substrait.type_pb2 import Type

from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import (
    body,
    children,
    field_of,
    join_type,
    kind,
    project,
    reference,
)

Name: TypeAlias = frozenset[str | int]
"""The table columns and integer literals from which the engine derives the name of a column.

Columns with different ones have different names; columns with equal ones may have the same name.
"""
_UNNAMED: Name = frozenset()
"""Such as `count(*)`, or `mark` in which a join notes whether a row has a match."""
_MARKED = re.compile(
    r"CASE WHEN Int64\(\d+\) IS NOT NULL THEN ((?:(?!CASE WHEN Int64\().)*?) END", re.DOTALL
)


class Naming:
    """Keeps the inputs of joins apart for one statement."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._marks = 0

    def apart(self, left: Rel, right: Rel, type_: str) -> tuple[Rel, Rel]:
        """Rename columns of one input of a join that have the name of one in the other input."""
        ours, theirs = names(left), names(right)
        if type_ == "LEFT_MARK":
            return self._renamed(left, ours, {*theirs, _UNNAMED}), right
        if type_ == "RIGHT_MARK":
            return left, self._renamed(right, theirs, {*ours, _UNNAMED})
        if len(ours) < len(theirs):
            return self._renamed(left, ours, set(theirs)), right
        return left, self._renamed(right, theirs, set(ours))

    def _renamed(self, rel: Rel, own: Sequence[Name], taken: AbstractSet[Name]) -> Rel:
        if taken.isdisjoint(own):
            return rel
        self._marks += 1
        return project(
            rel,
            [
                self._marked(reference(index)) if name in taken else reference(index)
                for index, name in enumerate(own)
            ],
        )

    def _marked(self, column: Expression) -> Expression:
        """Give a column another name in the only words that the plan language has for it.

        The engine names a column after its expression and then simplifies the expression.
        """
        mark = Expression()
        mark.literal.i64 = self._marks
        named = Expression()
        case = named.if_then.ifs.add()
        getattr(case, "if").CopyFrom(self._functions.call("is_not_null", mark))
        case.then.CopyFrom(column)
        return named


def without_marks(text: str) -> str:
    """Return the engine's text of a fragment with the names that its columns had before."""
    while (inner := _MARKED.sub(r"\1", text)) != text:
        text = inner
    return text


def names(rel: Rel) -> list[Name]:
    """Return what the engine derives the names of a relation's columns from."""
    found = _direct(rel)
    if body(rel).common.HasField("emit"):
        return [found[index] for index in body(rel).common.emit.output_mapping]
    return found


def _direct(rel: Rel) -> list[Name]:
    match kind(rel):
        case "read":
            return _of_read(rel)
        case "project":
            inside = names(rel.project.input)
            return inside + [_derived(each, inside) for each in rel.project.expressions]
        case "aggregate":
            return _of_aggregate(rel)
        case "join" | "cross":
            return _of_join(rel)
        case _:
            return names(children(rel)[0])


def _of_read(rel: Rel) -> list[Name]:
    found = [frozenset((rel.read.base_schema.names[place],)) for place in places(rel)]
    if rel.read.HasField("projection"):
        return [found[item.field] for item in rel.read.projection.select.struct_items]
    return list(found)


def places(read: Rel) -> Iterator[int]:
    """Yield the places of the columns' own names in the list of names of a read.

    The names of the fields inside a column follow its own name.
    """
    place = 0
    for type_ in read.read.base_schema.struct.types:
        yield place
        place += 1 + _inner_names(type_)


def _inner_names(type_: Type) -> int:
    """Count the names that the fields inside a type have in the list of names."""
    match type_.WhichOneof("kind"):
        case "struct":
            return sum(1 + _inner_names(each) for each in type_.struct.types)
        case "list":
            return _inner_names(type_.list.type)
        case "map":
            return _inner_names(type_.map.key) + _inner_names(type_.map.value)
        case _:
            return 0


def _of_aggregate(rel: Rel) -> list[Name]:
    inside = names(rel.aggregate.input)
    found = [_derived(each, inside) for each in rel.aggregate.grouping_expressions]
    found += [_derived(each, inside) for each in rel.aggregate.measures]
    return [*found, _UNNAMED] if len(rel.aggregate.groupings) > 1 else found


def _of_join(rel: Rel) -> list[Name]:
    left, right = map(names, children(rel))
    match join_type(rel):
        case "LEFT_SEMI" | "LEFT_ANTI":
            return left
        case "RIGHT_SEMI" | "RIGHT_ANTI":
            return right
        case "LEFT_MARK":
            return [*left, _UNNAMED]
        case "RIGHT_MARK":
            return [*right, _UNNAMED]
        case _:
            return [*left, *right]


def _derived(message: Any, inside: Sequence[Name]) -> Name:
    if isinstance(message, Expression) and (column := field_of(message)) is not None:
        return inside[column]
    return frozenset[str | int]().union(*_mentioned(message, inside))


def _mentioned(message: Any, inside: Sequence[Name]) -> Iterator[Name]:
    if isinstance(message, Expression):
        match message.WhichOneof("rex_type"):
            case "subquery":
                return
            case "literal":
                yield (
                    frozenset((message.literal.i64,))
                    if message.literal.HasField("i64")
                    else _UNNAMED
                )
                return
            case "selection" if message.selection.HasField("root_reference"):
                yield inside[message.selection.direct_reference.struct_field.field]
                return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for each in value if descriptor.is_repeated else (value,):
                yield from _mentioned(each, inside)
