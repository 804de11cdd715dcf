"""Plans of subqueries, which show only where they are decorrelated."""

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_engine.statements import decorrelation, plan_nodes, subplans
from caraway_engine.statements.plan_nodes import (
    SUBQUERIES,
    ExpressionPart,
    HiddenError,
    PlanNode,
)


@pytest.fixture(scope="module")
def context() -> SessionContext:
    made = SessionContext()
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string()),
                        pa.field("k", pa.int64(), nullable=False)])  # fmt: skip
    for name in ("t", "u", "v"):
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        made.register_record_batches(name, [[empty]])
    return made


def first(context: SessionContext, sql: str) -> tuple[ExpressionPart, PlanNode]:
    """Return the first subquery in the expressions of a statement, and the node that it is in."""
    for node in plan_nodes.nodes(context.sql(sql).logical_plan()):
        for expression in plan_nodes.expressions(node):
            for part in plan_nodes.inside(expression):
                if part.kind in SUBQUERIES:
                    return part, node
    raise AssertionError("there is no subquery")


def scanned(plan: object) -> list[str]:
    return [node.variant.fqn()[2] for node in plan_nodes.nodes(plan) if node.kind == "TableScan"]


@pytest.mark.parametrize(
    ("sql", "kind", "tables", "conditions"),
    [
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u)", "Exists", ["u"], 1),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", "Exists", ["u"], 1),
        ("SELECT 1 FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a > t.a AND u.b = t.b)",
         "Exists", ["u"], 1),
        ("SELECT 1 FROM t WHERE a IN (SELECT a FROM u)", "InSubquery", ["u"], 1),
        ("SELECT 1 FROM t WHERE a NOT IN (SELECT u.a FROM u, v)", "InSubquery", ["u", "v"], 1),
        ("SELECT (SELECT max(a) FROM u) FROM t", "ScalarSubquery", ["u"], 1),
        ("SELECT (SELECT max(a) FROM u WHERE u.b = t.b) FROM t", "ScalarSubquery", ["u"], 1),
        ("SELECT 1 FROM t WHERE a > ALL (SELECT a FROM u)", "SetComparison", ["u"], 1),
        ("SELECT 1 FROM t WHERE a = ANY (SELECT a FROM u)", "SetComparison", ["u"], 1),
        ("SELECT 1 FROM t WHERE a > (SELECT max(a) FROM u WHERE a IN (SELECT a FROM v))",
         "ScalarSubquery", ["u", "v"], 1),
    ],
)  # fmt: skip
def test_the_tables_of_a_subquery_are_in_its_plan(
    context: SessionContext, sql: str, kind: str, tables: list[str], conditions: int
) -> None:
    part, node = first(context, sql)
    assert part.kind == kind
    found = subplans.subplan(part, node)
    assert scanned(found.plan) == tables
    assert len(found.condition) == conditions
    assert not found.is_simplified


def test_a_predicate_that_only_simplification_shows_is_found(context: SessionContext) -> None:
    sql = (
        "SELECT 1 FROM t WHERE (SELECT count(*) FROM u WHERE (u.a = t.a AND u.b = 'x') "
        "OR (u.a = t.a AND u.b = 'y')) > 0"
    )
    found = subplans.subplan(*first(context, sql))
    assert scanned(found.plan) == ["u"]
    assert found.is_simplified


def test_what_is_no_subquery_is_hidden(context: SessionContext) -> None:
    node = next(iter(plan_nodes.nodes(context.sql("SELECT a FROM t").logical_plan())))
    (expression,) = plan_nodes.expressions(node)
    part = ExpressionPart("Column", expression, None)
    with pytest.raises(HiddenError, match="Column"):
        subplans.subplan(part, node)


@pytest.mark.parametrize(
    ("sql", "may_be_null"),
    [
        ("SELECT 1 FROM t WHERE a NOT IN (SELECT a FROM u)", True),
        ("SELECT 1 FROM t WHERE k NOT IN (SELECT a FROM u)", True),
        ("SELECT 1 FROM t WHERE a NOT IN (SELECT k FROM u)", True),
        ("SELECT 1 FROM t WHERE k NOT IN (SELECT k FROM u)", False),
        ("SELECT 1 FROM t WHERE k + 1 NOT IN (SELECT k FROM u)", False),
        ("SELECT 1 FROM t WHERE nullif(k, 1) NOT IN (SELECT k FROM u)", True),
        ("SELECT 1 FROM t WHERE k NOT IN (SELECT max(k) FROM u)", True),
        ("SELECT 1 FROM t WHERE k NOT IN (SELECT k FROM u WHERE u.b = t.b)", True),
    ],
)
def test_null_in_either_side_of_in_is_seen(
    context: SessionContext, sql: str, may_be_null: bool
) -> None:
    part, node = first(context, sql)
    assert subplans.may_be_null(part, node, subplans.subplan(part, node)) is may_be_null


@pytest.mark.parametrize(
    ("sql", "tables", "functions"),
    [
        ("SELECT a FROM t", {("t",)}, set()),
        ("SELECT upper(t.b) AS x FROM t JOIN u ON t.a = u.a", {("t",), ("u",)},
         {"upper", "equal"}),
        ("SELECT max(a) FROM t WHERE random() > 0.5 GROUP BY b", {("t",)}, {"max", "random", "gt"}),
        ("SELECT a FROM t UNION ALL SELECT a FROM datafusion.public.u", {("t",), ("u",)}, set()),
    ],
)  # fmt: skip
def test_what_a_plan_mentions_is_in_its_written_form(
    context: SessionContext,
    sql: str,
    tables: set[tuple[str, ...]],
    functions: set[str],
) -> None:
    node = plan_nodes.typed(context.sql(sql).logical_plan()._raw_plan)
    found = subplans.mentioned(node)
    assert {each[-1:] for each in found.tables} == tables
    assert functions <= found.functions


def test_a_plan_that_cannot_be_written_is_hidden(context: SessionContext) -> None:
    node = plan_nodes.typed(context.sql("SELECT unnest([1]) AS x").logical_plan()._raw_plan)
    with pytest.raises(HiddenError, match="Projection"):
        subplans.mentioned(node)


def test_the_columns_of_a_plan_have_their_types(context: SessionContext) -> None:
    plan = context.sql("SELECT k, a + 1 AS n, b FROM t").logical_plan()
    assert [(each.name, each.type, each.nullable) for each in subplans.schema(plan._raw_plan)] == [
        ("k", pa.int64(), False),
        ("n", pa.int64(), True),
        ("b", pa.string(), True),
    ]


@pytest.mark.parametrize("simplifies", [False, True])
def test_decorrelation_leaves_everything_else_as_it_is(
    context: SessionContext, simplifies: bool
) -> None:
    """No filter is pushed, no projection dropped, no aggregate rewritten."""
    sql = "SELECT c FROM (SELECT a AS c, b FROM t ORDER BY b) WHERE c > 1 AND c > 1 LIMIT 3"
    plan = context.sql(sql).logical_plan()
    before = [node.kind for node in plan_nodes.nodes(plan)]
    frame = decorrelation.frame(plan._raw_plan, simplifies)
    assert [node.kind for node in plan_nodes.nodes(frame.optimized_logical_plan())] == before


def test_decorrelation_makes_joins_of_subqueries(context: SessionContext) -> None:
    plan = context.sql("SELECT 1 FROM t WHERE a IN (SELECT a FROM u)").logical_plan()
    optimized = decorrelation.frame(plan._raw_plan).optimized_logical_plan()
    assert "Join" in [node.kind for node in plan_nodes.nodes(optimized)]


def test_functions_of_constants_are_kept_unless_it_simplifies(context: SessionContext) -> None:
    plan = context.sql("SELECT a FROM t WHERE a > 1 + 1").logical_plan()

    def kinds(simplifies: bool) -> list[str]:
        frame = decorrelation.frame(plan._raw_plan, simplifies)
        (_, node, *_) = plan_nodes.nodes(frame.optimized_logical_plan())
        return [part.kind for each in plan_nodes.expressions(node)
                for part in plan_nodes.inside(each)]  # fmt: skip

    assert kinds(False).count("BinaryExpr") == 2
    assert kinds(True).count("BinaryExpr") == 1
