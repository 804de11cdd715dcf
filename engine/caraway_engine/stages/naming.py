"""Gives the columns of a join's two inputs distinct names.

A fragment refers to columns by position. But the engine's physical optimizer looks columns up by
bare name when it moves a filter to an input. If the inputs of a join share a name, the filter may
land on the wrong column. See apache/datafusion#25244.

Columns of an exchange have names that are unique in the statement. Other columns keep the names of
their tables, or names that the engine derives from expressions. If two such names meet in a join,
those of one side are renamed.
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
"""The table columns and integer literals from which the engine derives a column's name.

Different values mean different names; equal values may mean the same name.
"""
_UNNAMED: Name = frozenset()
"""For example `count(*)`, or the `mark` column of a join."""
_MARKED = re.compile(
    r"CASE WHEN Int64\(\d+\) IS NOT NULL THEN ((?:(?!CASE WHEN Int64\().)*?) END", re.DOTALL
)


class Naming:
    """Renames join inputs for one statement, so that their column names differ."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._marks = 0

    def apart(self, left: Rel, right: Rel, type_: str) -> tuple[Rel, Rel]:
        """Rename the columns of one join input that have the same name as a column of the other."""
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
        """Rename a column with the only construct that Substrait has for it.

        The engine names a column after its expression, and then simplifies the expression.
        """
        mark = Expression()
        mark.literal.i64 = self._marks
        named = Expression()
        case = named.if_then.ifs.add()
        getattr(case, "if").CopyFrom(self._functions.call("is_not_null", mark))
        case.then.CopyFrom(column)
        return named


def without_marks(text: str) -> str:
    """Return the engine's text of a fragment with the original column names."""
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


def columns_read(read: Rel) -> frozenset[str]:
    """Return the names of the columns that a read takes of its table."""
    return frozenset(str(name) for column in _of_read(read) for name in column)


def places(read: Rel) -> Iterator[int]:
    """Yield the positions of the columns' own names in a read's list of names.

    The names of nested fields follow the name of their column.
    """
    place = 0
    for type_ in read.read.base_schema.struct.types:
        yield place
        place += 1 + _inner_names(type_)


def _inner_names(type_: Type) -> int:
    """Return how many names the nested fields of a type have in the list of names."""
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


def _derived(message: object, inside: Sequence[Name]) -> Name:
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
