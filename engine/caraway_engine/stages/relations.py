"""Reads and rebuilds Substrait relations."""

from collections.abc import Iterator, Sequence
from typing import Any

from substrait.algebra_pb2 import Expression, Rel

from caraway_core.ids import TableName

INPUT_FIELDS = {
    "read": (),
    "filter": ("input",),
    "project": ("input",),
    "aggregate": ("input",),
    "sort": ("input",),
    "fetch": ("input",),
    "join": ("left", "right"),
    "cross": ("left", "right"),
}
_LEFT_ONLY = ("JOIN_TYPE_LEFT_SEMI", "JOIN_TYPE_LEFT_ANTI")
_RIGHT_ONLY = ("JOIN_TYPE_RIGHT_SEMI", "JOIN_TYPE_RIGHT_ANTI")


def kind(rel: Rel) -> str:
    """Return the kind of a relation, such as `join`."""
    return str(rel.WhichOneof("rel_type"))


def body(rel: Rel) -> Any:
    """Return the message inside a relation, such as its JoinRel."""
    return getattr(rel, kind(rel))


def children(rel: Rel) -> list[Rel]:
    """Return the inputs of a relation."""
    if kind(rel) == "set":
        return list(rel.set.inputs)
    return [getattr(body(rel), name) for name in INPUT_FIELDS[kind(rel)]]


def with_children(rel: Rel, new: Sequence[Rel]) -> Rel:
    """Return a copy of a relation with other inputs."""
    copy = Rel()
    copy.CopyFrom(rel)
    if kind(rel) == "set":
        del copy.set.inputs[:]
        copy.set.inputs.extend(new)
        return copy
    for name, child in zip(INPUT_FIELDS[kind(rel)], new, strict=True):
        getattr(body(copy), name).CopyFrom(child)
    return copy


def join_type(rel: Rel) -> str:
    """Return the type of a join without its prefix: `LEFT_SEMI`; a cross join is `INNER`."""
    if kind(rel) == "cross":
        return "INNER"
    return str(rel.join.JoinType.Name(rel.join.type)).removeprefix("JOIN_TYPE_")


def width(rel: Rel) -> int:
    """Return the number of output columns."""
    emit = body(rel).common.emit.output_mapping
    if body(rel).common.HasField("emit"):
        return len(emit)
    return _direct_width(rel)


def _direct_width(rel: Rel) -> int:
    match kind(rel):
        case "read":
            if rel.read.HasField("projection"):
                return len(rel.read.projection.select.struct_items)
            return len(rel.read.base_schema.struct.types)
        case "project":
            return width(rel.project.input) + len(rel.project.expressions)
        case "aggregate":
            sets = len(rel.aggregate.groupings) > 1
            return len(rel.aggregate.grouping_expressions) + len(rel.aggregate.measures) + sets
        case "join" | "cross":
            return _join_width(rel)
        case _:
            return width(children(rel)[0])


def _join_width(rel: Rel) -> int:
    left, right = map(width, children(rel))
    type_ = "JOIN_TYPE_" + join_type(rel)
    if type_ in _LEFT_ONLY:
        return left
    if type_ in _RIGHT_ONLY:
        return right
    if type_ == "JOIN_TYPE_LEFT_MARK":
        return left + 1
    if type_ == "JOIN_TYPE_RIGHT_MARK":
        return right + 1
    return left + right


def origins(rel: Rel) -> list[int | None]:
    """Return the input column of each output column of a one-input relation, or None."""
    if kind(rel) == "project":
        inside = width(rel.project.input)
        direct: list[int | None] = list(range(inside))
        direct += [field_of(each) for each in rel.project.expressions]
    else:
        direct = list(range(width(children(rel)[0])))
    if body(rel).common.HasField("emit"):
        return [direct[index] for index in body(rel).common.emit.output_mapping]
    return direct


def field_of(expression: Expression) -> int | None:
    """Return the input column that an expression refers to, or None for other expressions."""
    if expression.WhichOneof("rex_type") != "selection":
        return None
    selection = expression.selection
    if not selection.HasField("root_reference"):
        return None
    field = selection.direct_reference.struct_field
    if selection.direct_reference.WhichOneof("reference_type") != "struct_field":
        return None
    return None if field.HasField("child") else int(field.field)


def reference(index: int) -> Expression:
    """Return an expression that refers to input column `index`."""
    expression = Expression()
    expression.selection.direct_reference.struct_field.field = index
    expression.selection.root_reference.SetInParent()
    return expression


def fields(message: Any) -> Iterator[Any]:
    """Yield each field reference inside an expression, except those of its subqueries."""
    if isinstance(message, Expression):
        rex = message.WhichOneof("rex_type")
        if rex == "subquery":
            return
        if rex == "selection" and message.selection.HasField("root_reference"):
            yield message.selection.direct_reference.struct_field
            return
    for each in _submessages(message):
        yield from fields(each)


def subqueries(message: object) -> Iterator[Expression.Subquery]:
    """Yield the subqueries in the expressions of a relation, except those of its inputs."""
    for each in _submessages(message):
        if isinstance(each, Expression) and each.WhichOneof("rex_type") == "subquery":
            yield each.subquery
        elif not isinstance(each, Rel):
            yield from subqueries(each)


def walk(rel: Rel) -> Iterator[Rel]:
    """Yield a relation and all relations below it, including subqueries."""
    yield rel
    for subquery in subqueries(body(rel)):
        if subquery.WhichOneof("subquery_type") == "scalar":
            yield from walk(subquery.scalar.input)
    for child in children(rel):
        yield from walk(child)


def _submessages(message: Any) -> Iterator[object]:
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if descriptor.is_repeated:
            yield from value
        else:
            yield value


def table_name(rel: Rel) -> TableName:
    """Return the table that a read names, without the default catalog and schema."""
    names = list(rel.read.named_table.names)
    while len(names) > 1 and names[0] in ("caraway", "public"):
        names = names[1:]
    return TableName(".".join(names))


def project(rel: Rel, expressions: Sequence[Expression]) -> Rel:
    """Wrap a relation so that its output is exactly the expressions over its columns."""
    inside = width(rel)
    new = Rel()
    new.project.input.CopyFrom(rel)
    new.project.expressions.extend(expressions)
    new.project.common.emit.output_mapping.extend(range(inside, inside + len(expressions)))
    return new


def has_window(rel: Rel) -> bool:
    """Return whether a projection computes window functions."""
    return any(each.WhichOneof("rex_type") == "window_function" for each in rel.project.expressions)


def append(rel: Rel, expressions: Sequence[Expression]) -> Rel:
    """Wrap a relation so that the expressions follow its own columns."""
    own = [reference(index) for index in range(width(rel))]
    return project(rel, [*own, *expressions])
