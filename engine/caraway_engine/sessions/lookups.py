"""Answers point lookups from an index, without planning each statement.

A point lookup is `SELECT columns FROM t WHERE key = literal`, or `IN` a few literals. It must name
all columns of the primary key or of one index. Statements are recognised by their shape: the text
with the literals removed. The first statement of a shape is planned with a unique probe literal in
each place. The plan then proves which column each literal is compared with. A statement without
that proof is planned as usual.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from threading import Lock
from typing import Any, Literal

import pyarrow as pa
from substrait.algebra_pb2 import Rel
from substrait.plan_pb2 import Plan

from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_core.tables import StoredTable, TableSpec
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.joins import conjuncts
from caraway_engine.stages.relations import children, field_of, kind, origins, table_name
from caraway_engine.statements import literals, shapes
from caraway_engine.statements.shapes import StatementShape
from caraway_engine.stored import StoredVersion

MOST_ROWS_ASKED = 64
"""The most keys that are looked up one by one. For more keys the engine makes a plan."""
_KEPT_SHAPES = 512


@dataclass(frozen=True, slots=True)
class LookupShape:
    """A statement shape that is known to be a lookup in `table` by `columns`.

    `places` are the positions of the literals for each column. `output` are the table's columns in
    the result, and `schema` is the result's schema. `accepted` are the literals that SQL compares
    with each column without a cast: text, or a range of numbers.
    """

    table: TableName
    columns: tuple[str, ...]
    accepted: tuple[range | None, ...]
    places: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    schema: pa.Schema
    limit: int | None


@dataclass(frozen=True, slots=True)
class PointLookup:
    """A lookup of the rows that have any of `keys`, which are values of the columns."""

    known: LookupShape
    keys: tuple[tuple[Any, ...], ...]

    @property
    def table(self) -> TableName:
        """The table to look up rows in."""
        return self.known.table

    def answer(self, rows: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Build the result from the rows that were found, which have all columns of the table."""
        shape = self.known
        found = rows[0] if len(rows) == 1 else pa.concat_batches(rows)
        if shape.limit is not None:
            found = found.slice(0, shape.limit)
        columns = [found.column(index) for index in shape.output]
        return pa.RecordBatch.from_arrays(columns, schema=shape.schema)


Probe = Callable[[str], tuple[Plan, pa.Schema]]
"""Plans a statement without optimizing it, and returns the plan and its schema. May raise."""


def pieces(version: StoredVersion, lookup: PointLookup) -> frozenset[str]:
    """Return the names of the pieces that can hold the rows: one for each key, or all."""
    names: set[str] = set()
    for key in lookup.keys:
        seeking = version.content.seeking(lookup.known.columns, key)
        names.update(version.names if seeking is None else seeking.names)
    return frozenset(names)


class Lookups:
    """Recognises point lookups over the tables of one catalog."""

    def __init__(self, tables: Mapping[TableName, TableSpec], probe: Probe) -> None:
        self._tables = {
            name: version
            for name, spec in tables.items()
            if (version := spec.version) is not None and version.keys is not None
        }
        self._probe = probe
        self._known: OrderedDict[str, LookupShape | None] = OrderedDict()
        self._lock = Lock()

    def find(self, statement: Statement) -> "PointLookup | Literal['unknown'] | None":
        """Return the lookup that a statement makes, or None if it is not a lookup. Never blocks.

        Returns 'unknown' for a shape that has not been learnt yet.
        """
        if not self._tables or statement.store is not None or statement.bound:
            return None
        shape = shapes.of(statement)
        if shape is None:
            return None
        with self._lock:
            if shape.text not in self._known:
                return "unknown"
            lookup_shape = self._known[shape.text]
            self._known.move_to_end(shape.text)
        return None if lookup_shape is None else _filled(lookup_shape, shape)

    def learn(self, statement: Statement) -> None:
        """Plan a statement to learn whether its shape is a lookup. Blocks."""
        shape = shapes.of(statement)
        if shape is None:
            return
        try:
            lookup_shape = self._proven(shape)
        except QueryError:
            lookup_shape = None  # Normal planning reports the error.
        with self._lock:
            self._known[shape.text] = lookup_shape
            if len(self._known) > _KEPT_SHAPES:
                self._known.popitem(last=False)

    def _proven(self, shape: StatementShape) -> LookupShape | None:
        plan, schema = self._probe(shape.probe())
        if len(plan.relations) != 1 or plan.relations[0].WhichOneof("rel_type") != "root":
            return None
        return _known(plan.relations[0].root.input, shape, schema, self._tables, Functions(plan))


def _known(
    root: Rel,
    shape: StatementShape,
    schema: pa.Schema,
    tables: Mapping[TableName, StoredTable],
    functions: Functions,
) -> LookupShape | None:
    limit, rel = _limited(root)
    output, rel = _followed(rel, None)
    if rel is None or output is None or kind(rel) != "filter" or rel.filter.common.HasField("emit"):
        return None
    conditions = _conditions(rel, shape, functions)
    columns, read = _followed(rel.filter.input, None)
    if conditions is None or read is None or kind(read) != "read" or not _is_plain(read):
        return None
    table = table_name(read)
    spec = tables.get(table)
    if spec is None or len(read.read.base_schema.struct.types) != len(spec.schema):
        return None
    if columns is not None:
        output = [columns[column] for column in output]
        conditions = {columns[column]: places for column, places in conditions.items()}
    by_name = {spec.schema.names[column]: places for column, places in conditions.items()}
    index = next((each for each in _indexes(spec) if set(each) == by_name.keys()), None)
    if index is None or len(by_name) < len(conditions) or len(output) != len(schema):
        return None
    if [spec.schema.field(column).type for column in output] != schema.types:
        return None
    types = [spec.schema.field(name).type for name in index]
    if not all(map(_is_compared, types)):
        return None
    places = tuple(by_name[name] for name in index)
    accepted = tuple(map(_range, types))
    return LookupShape(table, index, accepted, places, tuple(output), schema, limit)


def _indexes(spec: StoredTable) -> Iterator[tuple[str, ...]]:
    if spec.keys is not None:
        yield from (spec.keys.primary, *(each.columns for each in spec.keys.indexes))


def _limited(rel: Rel) -> tuple[int | None, Rel]:
    if kind(rel) != "fetch" or rel.fetch.common.HasField("emit"):
        return None, rel
    count, offset = rel.fetch.count_expr, rel.fetch.offset_expr
    if count.literal.WhichOneof("literal_type") != "i64" or offset.literal.i64:
        return None, rel
    if rel.fetch.HasField("offset_expr") and offset.literal.WhichOneof("literal_type") != "i64":
        return None, rel
    return int(count.literal.i64), rel.fetch.input


def _followed(rel: Rel, output: list[int] | None) -> tuple[list[int] | None, Rel | None]:
    """Descend through projections of plain columns; return None at any other projection."""
    while kind(rel) == "project":
        found = origins(rel)
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None, None
        output = known if output is None else [known[column] for column in output]
        rel = children(rel)[0]
    return output, rel


def _conditions(
    rel: Rel, shape: StatementShape, functions: Functions
) -> dict[int, tuple[int, ...]] | None:
    """Return the literals that each column is compared with.

    Returns None unless each condition compares a column and every literal is used once.
    """
    probes = shape.probes()
    found: dict[int, tuple[int, ...]] = {}
    for each in conjuncts(rel.filter.condition, functions):
        match each.WhichOneof("rex_type"):
            case "singular_or_list":
                sides = [each.singular_or_list.value, *each.singular_or_list.options]
            case "scalar_function":
                call = each.scalar_function
                if functions.name(call.function_reference) != "equal":
                    return None
                sides = [argument.value for argument in call.arguments]
                if len(sides) == 2 and field_of(sides[0]) is None:
                    sides.reverse()
            case _:
                return None
        column = field_of(sides[0])
        places = [probes.get(literals.value(side)) for side in sides[1:]]
        if column is None or column in found or any(place is None for place in places):
            return None
        found[column] = tuple(place for place in places if place is not None)
    used = [place for places in found.values() for place in places]
    return found if sorted(used) == list(range(len(shape.values))) else None


def _is_plain(read: Rel) -> bool:
    return read.read.WhichOneof("read_type") == "named_table" and not (
        read.read.HasField("filter")
        or read.read.HasField("best_effort_filter")
        or read.read.HasField("projection")
        or read.read.common.HasField("emit")
    )


def _filled(lookup_shape: LookupShape, shape: StatementShape) -> PointLookup | None:
    columns = []
    for accepted, places in zip(lookup_shape.accepted, lookup_shape.places, strict=True):
        values = dict.fromkeys(shape.values[place] for place in places)
        if not all(_fits(value, accepted) for value in values):
            return None
        columns.append(tuple(values))
    asked = 1
    for values_ in columns:
        asked *= len(values_)
    return PointLookup(lookup_shape, tuple(product(*columns))) if asked <= MOST_ROWS_ASKED else None


def _fits(value: object, accepted: range | None) -> bool:
    if accepted is None or isinstance(value, str):
        return accepted is None and isinstance(value, str)
    return value in accepted


def _is_compared(type_: pa.DataType) -> bool:
    """Return whether SQL compares some literals with a column of this type without a cast."""
    return pa.types.is_integer(type_) or _is_text(type_)


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )


def _range(type_: pa.DataType) -> range | None:
    """Return the range of numbers that a column can hold, or None for a text column."""
    if _is_text(type_):
        return None
    if pa.types.is_unsigned_integer(type_):
        return range(1 << type_.bit_width)
    half = 1 << (type_.bit_width - 1)
    return range(-half, half)
