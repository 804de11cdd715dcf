"""Finds the partitions that a statement needs, from the filters of its plan.

Only filters that compare a stored column with a literal of its type are used. Any other filter
keeps all partitions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from substrait.algebra_pb2 import Expression, Rel
from substrait.plan_pb2 import Plan

from caraway_core.ids import TableName
from caraway_core.partitions import matching, naming
from caraway_core.partitions.keys import ByExpression
from caraway_core.partitions.matching import Fact
from caraway_core.protocols.fleet import Share
from caraway_core.tables import StoredTable, TableSpec
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import (
    body,
    children,
    field_of,
    kind,
    origins,
    subqueries,
    table_name,
)
from caraway_engine.statements import literals

Facts = tuple[Fact, ...]
Reads = Mapping[TableName, tuple[Facts, ...]]
"""For each table, what the filters say about its rows, once per read of the table."""
_Known = list[tuple[int, tuple[Any, ...]]]
"""Column positions, each with the only values that the column may have."""


def reads(plan: Plan) -> Reads:
    """Return what the filters of a plan say about the tables that it reads."""
    found: dict[TableName, tuple[Facts, ...]] = {}
    functions = Functions(plan)
    for table, facts in _visited(plan.relations[0].root.input, [], functions):
        found[table] = (*found.get(table, ()), facts)
    return found


def kept(spec: StoredTable, reads: Sequence[Facts], names: Iterable[str]) -> frozenset[str]:
    """Return the partitions among `names` that at least one of the reads may need."""
    keys = {naming.values_of(name): name for name in names}
    wanted: set[str] = set()
    for facts in reads:
        matched = matching.matching(spec.cut, list(keys), facts, spec.schema)
        wanted.update(keys[key] for key in matched)
    return frozenset(wanted)


def pruned(spec: StoredTable, reads: Sequence[Facts], share: Share) -> Share:
    """Remove the partitions from a share that no read needs."""
    names = [piece.name for piece in share.pieces]
    wanted = kept(spec, reads, names)
    return replace(share, pieces=tuple(each for each in share.pieces if each.name in wanted))


def is_cut(spec: TableSpec | None) -> TypeGuard[StoredTable]:
    """Return whether a table has partitions that can be pruned.

    False if the row that wins for a duplicate key may be in another partition.
    """
    version = spec.version if spec is not None else None
    if version is None or not version.cut.terms:
        return False
    keys = version.keys
    if keys is None or not keys.primary or keys.twice in ("refuse", "same"):
        return True
    return all(
        not isinstance(term, ByExpression) and term.column in keys.primary
        for term in version.cut.terms
    )


def _visited(rel: Rel, known: _Known, functions: Functions) -> Iterator[tuple[TableName, Facts]]:
    for subquery in subqueries(body(rel)):
        if subquery.WhichOneof("subquery_type") == "scalar":
            yield from _visited(subquery.scalar.input, [], functions)
    match kind(rel):
        case "read":
            yield table_name(rel), _facts(rel, known)
        case "filter":
            below = [*_below(rel, known), *_conditions(rel.filter.condition, functions)]
            yield from _visited(rel.filter.input, below, functions)
        case "project":
            yield from _visited(rel.project.input, _below(rel, known), functions)
        case _:
            for child in children(rel):
                yield from _visited(child, [], functions)


def _below(rel: Rel, known: _Known) -> _Known:
    """Map known columns of a relation's output to the columns of its input."""
    if not known:
        return known
    origin = origins(rel)
    moved = ((origin[column], values) for column, values in known)
    return [(column, values) for column, values in moved if column is not None]


def _facts(rel: Rel, known: _Known) -> Facts:
    names = list(rel.read.base_schema.names)
    if len(names) != len(rel.read.base_schema.struct.types):
        return ()  # Nested types list field names too, so positions differ.
    columns: Sequence[int] = range(len(names))
    if rel.read.HasField("projection"):
        columns = [each.field for each in rel.read.projection.select.struct_items]
    if rel.read.common.HasField("emit"):
        columns = [columns[index] for index in rel.read.common.emit.output_mapping]
    return tuple(Fact(names[columns[column]], values) for column, values in known)


def _conditions(expression: Expression, functions: Functions) -> _Known:
    """Return what must hold for columns wherever the expression is true."""
    match expression.WhichOneof("rex_type"):
        case "singular_or_list":
            return _listed(expression.singular_or_list)
        case "scalar_function":
            call = expression.scalar_function
            arguments = [each.value for each in call.arguments]
            match functions.name(call.function_reference):
                case "and":
                    return [each for side in arguments for each in _conditions(side, functions)]
                case "or":
                    return _either([_conditions(side, functions) for side in arguments])
                case "equal":
                    return _equal(*arguments)
    return []


def _listed(among: Any) -> _Known:
    column = field_of(among.value)
    values = [literals.value(each) for each in among.options]
    if column is None or any(value is literals.UNKNOWN for value in values):
        return []
    return [(column, tuple(values))]


def _equal(first: Expression, second: Expression) -> _Known:
    for one, other in ((first, second), (second, first)):
        column, value = field_of(one), literals.value(other)
        if column is not None and value is not literals.UNKNOWN:
            return [(column, (value,))]
    return []


def _either(sides: Sequence[_Known]) -> _Known:
    """Return columns that every side restricts, each with the values that any side allows."""
    first, *others = (dict(side) for side in sides)
    shared = [column for column in first if all(column in other for other in others)]
    return [
        (column, tuple(value for side in (first, *others) for value in side[column]))
        for column in shared
    ]
