"""Plans each kind of relation on top of the parts that its inputs became."""

from collections.abc import Mapping
from dataclasses import replace

from substrait.algebra_pb2 import Expression, Rel, SortField

from caraway_engine.stages import aggregates, policy
from caraway_engine.stages.graph import ReadMode, SortKey, TableFacts, TopRows
from caraway_engine.stages.joining import visit_join
from caraway_engine.stages.parts import StagePart, joined
from caraway_engine.stages.planner import Planner, Visit
from caraway_engine.stages.relations import (
    children,
    field_of,
    kind,
    origins,
    reference,
    table_name,
    width,
    with_children,
)


def _visit_read(planner: Planner, rel: Rel, path: str) -> StagePart:
    table = table_name(rel)
    facts = planner.cluster.tables.get(table)
    if facts is None:
        return StagePart(rel, 0)
    read = facts.even_bytes(width(rel))
    size = read if facts.is_kept else policy.decoded(read)
    is_filtered = rel.read.HasField("filter")
    if is_filtered:
        size = policy.filtered(size)
    if table not in planner.divided:
        return StagePart(rel, size, is_whole_table=not is_filtered)
    keys = _bucket_keys(rel, facts)
    return StagePart(
        rel, size, "slots", planner.cluster.slots, tables=frozenset({table}), keys=keys,
        group=facts.buckets.group if facts.buckets and keys else None,
        is_whole_table=not is_filtered,
    )  # fmt: skip


def _bucket_keys(rel: Rel, facts: TableFacts) -> tuple[int, ...] | None:
    """Return the position of the bucket column in the output of a read."""
    if facts.buckets is None or len(rel.read.base_schema.struct.types) != facts.columns:
        return None
    columns = list(range(facts.columns))
    if rel.read.HasField("projection"):
        columns = [each.field for each in rel.read.projection.select.struct_items]
    if rel.read.common.HasField("emit") or facts.buckets.column not in columns:
        return None
    return (columns.index(facts.buckets.column),)


def _visit_unary(planner: Planner, rel: Rel, path: str) -> StagePart | None:
    child = planner.visit(children(rel)[0], path + ".0")
    if child is None:
        return None
    if kind(rel) == "filter":
        # A filter that the scan applies, too, is above it once more.
        is_counted = kind(child.rel) == "read" and child.rel.read.HasField("filter")
        size = child.size_bytes if is_counted else policy.filtered(child.size_bytes)
        child = replace(child, is_whole_table=False, size_bytes=size)
    return child.wrapped(with_children(rel, [child.rel]))


def _visit_project(planner: Planner, rel: Rel, path: str) -> StagePart | None:
    windows = [each for each in rel.project.expressions if _is_window(each)]
    if not windows:
        return _visit_unary(planner, rel, path)
    child = planner.visit(rel.project.input, path + ".0")
    if child is None:
        return None
    by = _common_partition(windows)
    placed = _placed(planner, child, path, by, "window")
    return placed and placed.wrapped(with_children(rel, [placed.rel]))


def _is_window(expression: Expression) -> bool:
    return bool(expression.WhichOneof("rex_type") == "window_function")


def _common_partition(windows: list[Expression]) -> list[Expression]:
    """Return the partition keys that all windows share; partitioning by them suits each window."""
    first, *others = ([*each.window_function.partitions] for each in windows)
    return [key for key in first if all(key in other for other in others)]


def _placed(
    planner: Planner, child: StagePart, path: str, by: list[Expression], note: str
) -> StagePart | None:
    """Bring rows with equal `by` to one task: gather few rows, hash-partition many."""
    if child.is_everywhere:
        return child
    if not by:
        return planner.gathered(child, path + ".0", note)
    by = _distinct(by)
    columns = [field_of(each) for each in by]
    if child.keys is not None and set(child.keys) <= set(columns):
        return child
    # An aggregate may have left few rows, of which many partitions would be of no use.
    stage, measured = planner.kept(child, path + ".0", note, by, planner.cluster.slots)
    if measured is None:
        return None
    size = measured.size_bytes
    if planner.cluster.policy.may_gather(size):
        return planner.reading(stage, ReadMode.ALL, size)
    if stage.hashed is not None and stage.hashed.count >= planner.cluster.partitions(size):
        return with_keys(planner.reading(stage, ReadMode.PARTITION, size), by)
    own = planner.reading(stage, ReadMode.OWN, size)
    return parted(planner, own, path + ".0", by, size, note)


def _distinct(by: list[Expression]) -> list[Expression]:
    """Remove duplicate expressions."""
    return list({each.SerializeToString(deterministic=True): each for each in by}.values())


def parted(
    planner: Planner, part: StagePart, path: str, by: list[Expression], size: float, note: str
) -> StagePart:
    """Hash-partition rows by the key expressions, into as many partitions as memory requires."""
    count = planner.cluster.partitions(size)
    stage = planner.hashed(part, path, by, count, note)
    return with_keys(planner.reading(stage, ReadMode.PARTITION, size), by)


def with_keys(part: StagePart, by: list[Expression]) -> StagePart:
    """Return a part that is known to be partitioned by these expressions."""
    columns = [field_of(each) for each in by]
    known = tuple(column for column in columns if column is not None)
    return StagePart(
        part.rel, part.size_bytes, part.layout, part.count, part.readings, part.tables,
        known if len(known) == len(columns) else None, colocated=part.colocated,
    )  # fmt: skip


def _visit_aggregate(planner: Planner, rel: Rel, path: str) -> StagePart | None:
    child = planner.visit(rel.aggregate.input, path + ".0")
    if child is None:
        return None
    whole = with_children(rel, [child.rel])
    by = list(rel.aggregate.grouping_expressions)
    columns = [field_of(each) for each in by]
    if len(rel.aggregate.groupings) > 1:
        gathered = planner.gathered(child, path + ".0", "grouping sets")
        return _aggregated(rel, gathered, ())
    if child.is_everywhere:
        return _aggregated(rel, child, ())
    if by and child.keys is not None and set(child.keys) <= set(columns):
        return _aggregated(rel, child, tuple(columns.index(key) for key in child.keys))
    cut = aggregates.decompose(rel, child.rel, planner.functions)
    if cut is None:
        placed = _placed(planner, child, path, by, "rows by group")
        if placed is None:
            return None
        keys = tuple(columns.index(key) for key in placed.keys or ())
        return _aggregated(rel, placed, keys)
    partial = StagePart(
        cut.partial, child.size_bytes, child.layout, child.count, child.readings, child.tables,
        colocated=child.colocated,
    )  # fmt: skip
    groups = [reference(index) for index in range(cut.groups)]
    merged = _placed(planner, partial, path, groups, "partial aggregate")
    if merged is None:
        return None
    schema = planner.schemas.schema(planner.functions.plan(whole))
    types = planner.schemas.types(schema)
    final = aggregates.merge(rel, cut, merged.rel, planner.functions, types)
    return StagePart(
        final, merged.size_bytes, merged.layout, merged.count, merged.readings, merged.tables,
        merged.keys, colocated=merged.colocated,
    )  # fmt: skip


def _aggregated(rel: Rel, child: StagePart, keys: tuple[int, ...]) -> StagePart:
    return StagePart(
        with_children(rel, [child.rel]), child.size_bytes, child.layout, child.count,
        child.readings, child.tables, keys or None, group=child.group if keys else None,
        colocated=child.colocated,
    )  # fmt: skip


def _visit_sort(planner: Planner, rel: Rel, path: str) -> StagePart | None:
    child = planner.visit(rel.sort.input, path + ".0")
    if child is None:
        return None
    placed = planner.gathered(child, path + ".0", "rows to sort")
    return placed.wrapped(with_children(rel, [placed.rel]))


def _visit_fetch(planner: Planner, rel: Rel, path: str) -> StagePart | None:
    """Plan LIMIT and OFFSET: each task takes the rows that may be needed, then one task selects."""
    below = rel.fetch.input
    sort = below if kind(below) == "sort" else None
    child = planner.visit(sort.sort.input, path + ".0.0") if sort else planner.visit(
        below, path + ".0"
    )  # fmt: skip
    if child is None:
        return None
    limit, top = _rows_needed(rel), None
    if not child.is_everywhere and limit is not None:
        ordered = with_children(sort, [child.rel]) if sort else child.rel
        local = Rel()
        local.fetch.input.CopyFrom(ordered)
        local.fetch.count_expr.literal.i64 = limit
        child = StagePart(local, child.size_bytes, child.layout, child.count, child.readings,
                     child.tables, colocated=child.colocated)  # fmt: skip
        top = _top(sort, limit)
    gathered = planner.gathered(child, path + ".0", "first rows", top)
    top = with_children(sort, [gathered.rel]) if sort else gathered.rel
    return replace(gathered, is_whole_table=False).wrapped(with_children(rel, [top]))


_DIRECTIONS = {
    "SORT_DIRECTION_ASC_NULLS_FIRST": (False, True),
    "SORT_DIRECTION_ASC_NULLS_LAST": (False, False),
    "SORT_DIRECTION_DESC_NULLS_FIRST": (True, True),
    "SORT_DIRECTION_DESC_NULLS_LAST": (True, False),
}


def _top(sort: Rel | None, count: int) -> TopRows | None:
    """Say what each task leaves; None where it is ordered by more than columns that it leaves."""
    keys = []
    left = origins(sort) if sort else []
    for each in sort.sort.sorts if sort else ():
        column = field_of(each.expr)
        direction = _DIRECTIONS.get(SortField.SortDirection.Name(each.direction))
        if column is None or column not in left or direction is None:
            return None
        keys.append(SortKey(left.index(column), *direction))
    return TopRows(tuple(keys), count)


def _rows_needed(rel: Rel) -> int | None:
    """Return the sum of offset and count, or None if there is no count, or all rows may count."""
    fetch = rel.fetch
    if not fetch.HasField("count_expr"):
        return None
    if fetch.count_expr.WhichOneof("rex_type") != "literal":
        return None
    needed = int(fetch.count_expr.literal.i64) + int(fetch.offset_expr.literal.i64)
    # The engine adds the two up as well, and its sum may have wrapped around.
    return needed if 0 <= needed < 2**63 else None


def _visit_set(planner: Planner, rel: Rel, path: str) -> StagePart | None:
    visited = [
        planner.visit(each, f"{path}.{number}") for number, each in enumerate(rel.set.inputs)
    ]
    parts = [part for part in visited if part is not None]
    if len(parts) < len(visited):
        return None
    if not all(part.is_everywhere for part in parts):
        parts = [_beside(planner, part, f"{path}.{number}") for number, part in enumerate(parts)]
    size = sum(part.size_bytes for part in parts)
    return joined(with_children(rel, [part.rel for part in parts]), parts, size)


def _beside(planner: Planner, part: StagePart, path: str) -> StagePart:
    """Spread a part over the slots, so that it can be in a union with shares of tables."""
    if part.layout == "slots":
        return part
    stage, measured = planner.kept(part, path, "one side of a union")
    size = measured.size_bytes if measured else part.size_bytes
    return planner.beside(stage, size)


VISITS: Mapping[str, Visit] = {
    "read": _visit_read,
    "filter": _visit_unary,
    "project": _visit_project,
    "aggregate": _visit_aggregate,
    "sort": _visit_sort,
    "fetch": _visit_fetch,
    "join": visit_join,
    "cross": visit_join,
    "set": _visit_set,
}
