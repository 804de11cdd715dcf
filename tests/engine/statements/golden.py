"""Words what we read of plans: the typed one, and the one in Substrait.

`python -m tests.engine.statements.golden` replaces `golden_plans.txt`, to be read in a diff.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.substrait import Producer
from substrait.algebra_pb2 import AggregateFunction, Expression, Rel, SortField
from substrait.plan_pb2 import Plan

from caraway_engine.execution.contexts import CATALOG
from caraway_engine.stages import relations
from caraway_engine.stages.functions import Functions
from caraway_engine.statements import plan_nodes, subplans
from caraway_engine.statements.plan_nodes import ExpressionPart, HiddenError, PlanNode

FILE = Path(__file__).with_name("golden_plans.txt")
STATEMENTS = (
    "SELECT a FROM t WHERE b = 'x'",
    "SELECT a + 1 AS n, -a, a % 2, a & 1 FROM t",
    "SELECT b || 'x' || a FROM t",
    "SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b LIKE 'x%' AND b IS NOT NULL",
    "SELECT a FROM t WHERE a IN (1, 2, 3, 4, 5) OR NOT a > 1",
    "SELECT a FROM t WHERE a IS DISTINCT FROM 1 OR b SIMILAR TO 'x'",
    "SELECT a FROM t WHERE b ILIKE 'x' OR b ~ 'y' OR (a > 1) IS TRUE OR (a > 2) IS UNKNOWN",
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE b END FROM t",
    "SELECT CASE a WHEN 1 THEN 'x' END FROM t",
    "SELECT CAST(a AS TEXT), TRY_CAST(b AS INT), CAST(a AS DECIMAL(9, 2)) AS c FROM t",
    "SELECT upper(b), coalesce(b, 'x'), nullif(a, 1), extract(year FROM d) FROM t",
    "SELECT now(), random()",
    "SELECT [a, 1][1], {'x': a}['x'] FROM t",
    "SELECT d + interval '1 day', timestamp '2024-01-01', NULL, true, 1.5 FROM t",
    "SELECT sum(a), avg(a), count(*), count(b), min(b) FROM t",
    "SELECT b, sum(a) FILTER (WHERE a > 1) FROM t GROUP BY b HAVING count(*) > 1",
    "SELECT count(DISTINCT a), array_agg(a ORDER BY b DESC) FROM t",
    "SELECT first_value(a ORDER BY b) IGNORE NULLS FROM t",
    "SELECT b, count(*) FROM t GROUP BY ROLLUP (b)",
    "SELECT count(*) FROM t GROUP BY GROUPING SETS ((a), (b, a), ())",
    "SELECT count(*) FROM t GROUP BY CUBE (a, b)",
    "SELECT row_number() OVER (PARTITION BY b ORDER BY a) FROM t",
    "SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT lag(a) IGNORE NULLS OVER (ORDER BY b) FROM t",
    "SELECT DISTINCT b FROM t",
    "SELECT DISTINCT ON (b) a FROM t ORDER BY b, a",
    "SELECT a FROM t ORDER BY b DESC NULLS LAST, a LIMIT 3 OFFSET 1",
    "SELECT * FROM t JOIN u ON t.a = u.a AND t.b < u.b",
    "SELECT * FROM t LEFT JOIN u USING (a)",
    "SELECT * FROM t FULL JOIN u ON t.a = u.a WHERE coalesce(t.a, u.a) > 1",
    "SELECT * FROM t CROSS JOIN u",
    "SELECT * FROM t WHERE a IN (SELECT a FROM u)",
    "SELECT * FROM t WHERE a NOT IN (SELECT a FROM u)",
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
    "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.b > t.b)",
    "SELECT * FROM t WHERE a > (SELECT max(a) FROM u)",
    "SELECT (SELECT max(a) FROM u WHERE u.b = t.b) FROM t",
    "SELECT * FROM t WHERE a > ALL (SELECT a FROM u)",
    "SELECT * FROM t WHERE a IN (SELECT a FROM u) OR b = 'x'",
    "SELECT t.a FROM t, LATERAL (SELECT u.b FROM u WHERE u.a = t.a) x",
    "SELECT a FROM t UNION ALL SELECT a FROM u",
    "SELECT a FROM t INTERSECT SELECT a FROM u",
    "SELECT a FROM t EXCEPT SELECT a FROM u",
    "WITH c AS (SELECT a FROM t) SELECT * FROM c x JOIN c y ON x.a = y.a",
    "SELECT unnest([a, 2]) FROM t",
    "VALUES (1, 'x'), (2, NULL)",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
    "INSERT INTO t SELECT * FROM u",
    "DELETE FROM t WHERE a = 1",
    "EXPLAIN ANALYZE SELECT a FROM t",
)


def context() -> SessionContext:
    config = SessionConfig().with_default_catalog_and_schema(CATALOG, "public")
    made = SessionContext(config)
    schema = pa.schema({"a": pa.int64(), "b": pa.string(), "d": pa.date32()})
    for name in ("t", "u"):
        made.register_record_batches(name, [[pa.RecordBatch.from_pylist([], schema=schema)]])
    return made


def outline(made: SessionContext, sql: str) -> str:
    """Say in lines what we see of a statement in both forms."""
    frame = made.sql(sql)
    lines = [f"== {sql}", *_typed(frame.logical_plan()), "-- substrait"]
    try:
        written = Producer.to_substrait_plan(frame.optimized_logical_plan(), made)
    except Exception:
        return "\n".join([*lines, "none"])
    plan = Plan()
    plan.ParseFromString(written.encode())
    functions = Functions(plan)
    return "\n".join([*lines, *_relation(plan.relations[0].root.input, functions, 0)])


def _typed(plan: Any) -> Iterator[str]:
    for node in plan_nodes.nodes(plan):
        try:
            found = [_expression(each, node) for each in plan_nodes.expressions(node)]
        except HiddenError as exc:
            found = [f"hidden: {exc}"]
        yield " | ".join([node.kind, *found])


def _expression(expression: Any, node: PlanNode) -> str:
    words = []
    try:
        for part in plan_nodes.inside(expression):
            words.append(_part(part, node))
    except HiddenError as exc:
        words.append(f"hidden: {exc}")
    return " ".join(words)


def _part(part: ExpressionPart, node: PlanNode) -> str:
    word = part.kind
    if part.kind in ("ScalarFunction", "BinaryExpr"):
        word += f"[{part.expression.rex_call_operator()}]"
    if part.clauses:
        held = part.clauses
        counts = (len(held.filter), len(held.partition_by), len(held.order_by))
        flags = " nulls" * held.has_null_treatment + " distinct" * held.is_distinct
        word += f"{counts}{flags}"
    if part.kind in plan_nodes.SUBQUERIES:
        try:
            found = subplans.subplan(part, node)
        except HiddenError:
            return f"{word}(hidden)"
        kinds = ",".join(each.kind for each in plan_nodes.nodes(found.plan))
        word += f"({kinds}; {len(found.condition)}{' simplified' * found.is_simplified})"
    return word


def _relation(rel: Rel, functions: Functions, depth: int) -> Iterator[str]:
    kind = relations.kind(rel)
    if kind not in (*relations.INPUT_FIELDS, "set"):
        yield "  " * depth + kind
        return
    body = relations.body(rel)
    words = [kind, *_own_words(rel, functions)]
    if body.common.HasField("emit"):
        words.append(f"emit{list(body.common.emit.output_mapping)}")
    yield "  " * depth + " ".join(words)
    for child in relations.children(rel):
        yield from _relation(child, functions, depth + 1)


def _own_words(rel: Rel, functions: Functions) -> list[str]:
    match relations.kind(rel):
        case "read":
            table = [relations.table_name(rel)] if rel.read.HasField("named_table") else ["rows"]
            words = [*table, str(relations.width(rel))]
            if rel.read.HasField("filter"):
                words.append(_words(rel.read.filter, functions))
            return words
        case "filter":
            return [_words(rel.filter.condition, functions)]
        case "project":
            return [_words(each, functions) for each in rel.project.expressions]
        case "sort":
            return [_sort(each, functions) for each in rel.sort.sorts]
        case "fetch":
            return [_words(rel.fetch.offset_expr, functions), _words(rel.fetch.count_expr,
                                                                     functions)]  # fmt: skip
        case "join":
            return [relations.join_type(rel), _words(rel.join.expression, functions)]
        case "aggregate":
            return _aggregate(rel, functions)
        case "set":
            return [rel.set.SetOp.Name(rel.set.op)]
    return []


def _aggregate(rel: Rel, functions: Functions) -> list[str]:
    groups = [_words(each, functions) for each in rel.aggregate.grouping_expressions]
    sets = [list(each.expression_references) for each in rel.aggregate.groupings]
    words = [f"by({' '.join(groups)})", f"sets{sets}" if len(sets) > 1 else ""]
    for each in rel.aggregate.measures:
        call = each.measure
        name = functions.name(call.function_reference)
        arguments = " ".join(_words(one.value, functions) for one in call.arguments)
        sorts = " ".join(_sort(one, functions) for one in call.sorts)
        is_distinct = call.invocation == AggregateFunction.AGGREGATION_INVOCATION_DISTINCT
        filtered = f" where {_words(each.filter, functions)}" if each.HasField("filter") else ""
        words.append(f"{name}({'distinct ' * is_distinct}{arguments}{' by ' * bool(sorts)}{sorts})"
                     f"{filtered}")  # fmt: skip
    return [word for word in words if word]


def _sort(field: SortField, functions: Functions) -> str:
    direction = SortField.SortDirection.Name(field.direction).removeprefix("SORT_DIRECTION_")
    return f"{_words(field.expr, functions)}:{direction}"


def _words(expression: Expression, functions: Functions) -> str:
    kind = expression.WhichOneof("rex_type")
    match kind:
        case "literal":
            return str(expression.literal.WhichOneof("literal_type"))
        case "selection":
            column = relations.field_of(expression)
            return f"#{column}" if column is not None else "#nested"
        case "scalar_function" | "window_function":
            call = getattr(expression, kind)
            arguments = [_words(each.value, functions) for each in call.arguments]
            name = functions.name(call.function_reference)
            over = _over(call, functions) if kind == "window_function" else ""
            return f"{name}({' '.join(arguments)}){over}"
        case "cast":
            type_ = expression.cast.type.WhichOneof("kind")
            return f"{_words(expression.cast.input, functions)}::{type_}"
        case "if_then":
            chosen = expression.if_then
            cases = [
                f"{_words(getattr(each, 'if'), functions)}:{_words(each.then, functions)}"
                for each in chosen.ifs
            ]
            otherwise = _words(getattr(chosen, "else"), functions)
            return f"case({' '.join(cases)} else:{otherwise})"
        case "singular_or_list":
            held = expression.singular_or_list
            options = [_words(each, functions) for each in held.options]
            return f"{_words(held.value, functions)} in({' '.join(options)})"
        case "subquery":
            inner = expression.subquery
            if inner.WhichOneof("subquery_type") != "scalar":
                return f"subquery:{inner.WhichOneof('subquery_type')}"
            return "(" + " < ".join(
                each.strip() for each in _relation(inner.scalar.input, functions, 0)
            ) + ")"  # fmt: skip
    return str(kind)


def _over(call: Any, functions: Functions) -> str:
    by = " ".join(_words(each, functions) for each in call.partitions)
    sorts = " ".join(_sort(each, functions) for each in call.sorts)
    bounds = [each.WhichOneof("kind") for each in (call.lower_bound, call.upper_bound)]
    return f" over({by}; {sorts}; {call.bounds_type} {bounds[0]} {bounds[1]})"


def all_outlines() -> str:
    made = context()
    return "\n\n".join(outline(made, sql) for sql in STATEMENTS) + "\n"


if __name__ == "__main__":
    FILE.write_text(all_outlines())
