"""Reading and rebuilding Substrait relations, without knowing what they mean for distribution."""

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
    return str(rel.WhichOneof("rel_type"))


def body(rel: Rel) -> Any:
    return getattr(rel, kind(rel))


def children(rel: Rel) -> list[Rel]:
    if kind(rel) == "set":
        return list(rel.set.inputs)
    return [getattr(body(rel), name) for name in INPUT_FIELDS[kind(rel)]]


def with_children(rel: Rel, new: Sequence[Rel]) -> Rel:
    """Copy a relation with other inputs."""
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
    """Count the columns that come out."""
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
    """Tell for each column of a one-input relation which input column it is, if it is one."""
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
    """Return the input column that an expression is, or None if it is more than that."""
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
    """Make the expression that is input column `index`."""
    expression = Expression()
    expression.selection.direct_reference.struct_field.field = index
    expression.selection.root_reference.SetInParent()
    return expression


def fields(message: Any) -> Iterator[Any]:
    """Yield each field reference inside an expression, not those of its subqueries."""
    if isinstance(message, Expression):
        rex = message.WhichOneof("rex_type")
        if rex == "subquery":
            return
        if rex == "selection" and message.selection.HasField("root_reference"):
            yield message.selection.direct_reference.struct_field
            return
    for each in _submessages(message):
        yield from fields(each)


def subqueries(message: Any) -> Iterator[Expression.Subquery]:
    """Yield the subqueries in the expressions of a relation, not those of its inputs."""
    for each in _submessages(message):
        if isinstance(each, Expression) and each.WhichOneof("rex_type") == "subquery":
            yield each.subquery
        elif not isinstance(each, Rel):
            yield from subqueries(each)


def walk(rel: Rel) -> Iterator[Rel]:
    """Yield a relation and all below it, subqueries included."""
    yield rel
    for subquery in subqueries(body(rel)):
        if subquery.WhichOneof("subquery_type") == "scalar":
            yield from walk(subquery.scalar.input)
    for child in children(rel):
        yield from walk(child)


def _submessages(message: Any) -> Iterator[Any]:
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        if descriptor.is_repeated:
            yield from value
        else:
            yield value


def table_name(rel: Rel) -> TableName:
    """Name the table that a read names, without the default catalog and schema."""
    names = list(rel.read.named_table.names)
    while len(names) > 1 and names[0] in ("caraway", "public"):
        names = names[1:]
    return TableName(".".join(names))


def project(rel: Rel, expressions: Sequence[Expression]) -> Rel:
    """Wrap a relation so that the expressions, over its columns, are what comes out."""
    inside = width(rel)
    new = Rel()
    new.project.input.CopyFrom(rel)
    new.project.expressions.extend(expressions)
    new.project.common.emit.output_mapping.extend(range(inside, inside + len(expressions)))
    return new


def append(rel: Rel, expressions: Sequence[Expression]) -> Rel:
    """Wrap a relation so that the expressions come after its own columns."""
    own = [reference(index) for index in range(width(rel))]
    return project(rel, [*own, *expressions])
