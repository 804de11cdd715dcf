"""Nodes of plans and the contents of their expressions."""

from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext, col, functions, lit
from datafusion.expr import Expr

from caraway_engine.statements import plan_nodes, wire
from caraway_engine.statements.plan_nodes import HiddenError, PlanNode


@pytest.fixture(scope="module")
def context() -> SessionContext:
    made = SessionContext(SessionConfig().with_target_partitions(1))
    rows = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", "y"], "é \"q'": [1.0, 2.0]})
    for name in ("t", "u"):
        made.register_record_batches(name, [[rows]])
    return made


def walked(context: SessionContext, sql: str) -> list[PlanNode]:
    return list(plan_nodes.nodes(context.sql(sql).logical_plan()))


def node(context: SessionContext, sql: str, kind: str) -> PlanNode:
    return next(each for each in walked(context, sql) if each.kind == kind)


def columns(expressions: Any) -> list[str]:
    """Return the names of all columns in expressions, sorted."""
    return sorted(
        part.expression.to_variant().name()
        for each in expressions
        for part in plan_nodes.inside(each)
        if part.kind == "Column"
    )


def test_the_root_comes_first_and_inputs_from_left_to_right(context: SessionContext) -> None:
    sql = "SELECT 1 FROM t AS first JOIN (SELECT a FROM u LIMIT 1) AS second ON first.a = second.a"
    found = walked(context, sql)
    assert [each.kind for each in found] == [
        "Projection", "Join", "SubqueryAlias", "TableScan", "SubqueryAlias", "Limit", "Projection",
        "TableScan",
    ]  # fmt: skip
    assert [each.variant.fqn()[2] for each in found if each.kind == "TableScan"] == ["t", "u"]


@pytest.mark.parametrize("depth", [1, 12])
def test_a_plan_of_any_depth_is_walked(context: SessionContext, depth: int) -> None:
    sql = "SELECT a FROM t"
    for number in range(depth):
        sql = f"SELECT a FROM ({sql}) x{number} WHERE a > {number}"
    kinds = [each.kind for each in walked(context, sql)]
    assert kinds.count("Filter") == depth and kinds[-1] == "TableScan"


@pytest.mark.parametrize(
    ("sql", "kind", "found"),
    [
        ("SELECT a, b FROM t", "Projection", ["a", "b"]),
        ("SELECT 1 FROM t WHERE a > 1 AND b = 'x'", "Filter", ["a", "b"]),
        ("SELECT sum(a) FROM t GROUP BY b", "Aggregate", ["a", "b"]),
        ("SELECT 1 FROM t ORDER BY b DESC, upper(b), a", "Sort", ["a", "b", "b"]),
        ("SELECT 1 FROM t x JOIN t y ON x.a = y.a AND x.b < y.b", "Join", ["a", "a", "b", "b"]),
        ("SELECT 1 FROM t JOIN u USING (a, b)", "Join", ["a", "a", "b", "b"]),
        ("SELECT sum(a) OVER (PARTITION BY b ORDER BY a) FROM t", "WindowExpr", ["a", "a", "b"]),
        ('SELECT "é ""q\'" FROM t', "Projection", ["é \"q'"]),
        ("SELECT a FROM t LIMIT 1", "Limit", []),
    ],
)
def test_expressions_of_a_node_are_all_of_them(
    context: SessionContext, sql: str, kind: str, found: list[str]
) -> None:
    assert columns(plan_nodes.expressions(node(context, sql, kind))) == found


def test_limits_and_values_are_expressions(context: SessionContext) -> None:
    def kinds(sql: str, kind: str) -> list[str]:
        found = plan_nodes.expressions(node(context, sql, kind))
        return [each.variant_name() for each in found]

    assert kinds("SELECT a FROM t LIMIT 3 OFFSET 1", "Limit") == ["Literal", "Literal"]
    assert kinds("SELECT a FROM t OFFSET 1", "Limit") == ["Literal"]
    assert len(kinds("VALUES (1, 'x'), (2, NULL), (3, upper('z'))", "Values")) == 6


def test_a_node_that_is_not_known_hides_its_expressions(context: SessionContext) -> None:
    scan = node(context, "SELECT a FROM t", "TableScan")
    with pytest.raises(HiddenError, match="Repartition"):
        plan_nodes.expressions(PlanNode("Repartition", scan.variant, scan.plan))


@pytest.mark.parametrize(
    ("sql", "counts", "flags"),
    [
        ("sum(a)", (0, 0, 0), (False, False)),
        ("sum(a) FILTER (WHERE a > 1)", (1, 0, 0), (False, False)),
        ("sum(DISTINCT a)", (0, 0, 0), (False, True)),
        ("array_agg(b ORDER BY a, b DESC)", (0, 0, 2), (False, False)),
        ("first_value(a) IGNORE NULLS", (0, 0, 0), (True, False)),
        ("array_agg(DISTINCT b ORDER BY b) FILTER (WHERE a > 1)", (1, 0, 1), (False, True)),
        ("sum(a) OVER ()", (0, 0, 0), (False, False)),
        ("sum(a) OVER (PARTITION BY b)", (0, 1, 0), (False, False)),
        ("sum(a) OVER (PARTITION BY b, upper(b) ORDER BY a)", (0, 2, 1), (False, False)),
        ("sum(a) FILTER (WHERE a > 1) OVER (ORDER BY a, b)", (1, 0, 2), (False, False)),
        ("count(DISTINCT a) OVER (PARTITION BY b)", (0, 1, 0), (False, True)),
        ("lag(a) IGNORE NULLS OVER (ORDER BY b)", (0, 0, 1), (True, False)),
        ("lag(a) RESPECT NULLS OVER (ORDER BY b)", (0, 0, 1), (True, False)),
    ],
)
def test_clauses_that_python_hides_are_read(
    context: SessionContext, sql: str, counts: tuple[int, int, int], flags: tuple[bool, bool]
) -> None:
    kind = "WindowExpr" if " OVER " in sql else "Aggregate"
    (expression,) = plan_nodes.expressions(node(context, f"SELECT {sql} FROM t", kind))
    found = plan_nodes.clauses(expression)
    assert (len(found.filter), len(found.partition_by), len(found.order_by)) == counts
    assert (found.has_null_treatment, found.is_distinct) == flags
    assert len(found.parts) == sum(counts)


def test_clauses_are_those_that_the_statement_has(context: SessionContext) -> None:
    sql = "SELECT array_agg(a + 1 ORDER BY b || 'z') FILTER (WHERE a > 7) FROM t"
    (expression,) = plan_nodes.expressions(node(context, sql, "Aggregate"))
    found = plan_nodes.clauses(expression)
    assert [each.canonical_name() for each in found.filter] == ["t.a > Int64(7)"]
    assert [each.canonical_name() for each in found.order_by] == ['t.b || Utf8("z")']


def test_a_subquery_in_a_clause_is_said_to_be_hidden(context: SessionContext) -> None:
    sql = "SELECT sum(a) FILTER (WHERE a > (SELECT 1 FROM u)) FROM t"
    (expression,) = plan_nodes.expressions(node(context, sql, "Aggregate"))
    seen: list[str] = []
    with pytest.raises(HiddenError, match="AggregateFunction"):
        for part in plan_nodes.inside(expression):
            seen.append(part.kind)
    assert seen == ["AggregateFunction", "Column"], "what is seen comes before the error"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("ROLLUP (a, b)", ["a", "b"]),
        ("CUBE (a, upper(b))", ["a", "b"]),
        ("GROUPING SETS ((a), (a, b), ())", ["a", "a", "b"]),
    ],
)
def test_what_is_grouped_by_is_seen(context: SessionContext, sql: str, found: list[str]) -> None:
    aggregate = node(context, f"SELECT count(*) FROM t GROUP BY {sql}", "Aggregate")
    assert columns(aggregate.variant.group_by_exprs()) == found


@pytest.mark.parametrize("operator", ["AND", "OR", "+"])
def test_a_chain_that_is_deeper_than_operands_are_copied_is_whole(
    context: SessionContext, operator: str
) -> None:
    count = 200
    link = "a > {}" if operator != "+" else "a * {}"
    chain = f" {operator} ".join(link.format(number) for number in range(count))
    (expression,) = plan_nodes.expressions(node(context, f"SELECT {chain} FROM t", "Projection"))
    parts = list(plan_nodes.inside(expression))
    numbers = [part.expression.to_variant().value_i64() for part in parts if part.kind == "Literal"]
    assert sorted(numbers) == list(range(count))
    assert columns([expression]) == ["a"] * count


def test_operands_of_every_kind_are_seen(context: SessionContext) -> None:
    sql = (
        "SELECT CASE WHEN a BETWEEN 1 AND a + 2 THEN TRY_CAST(b AS INT) ELSE -a END, "
        "b LIKE b, a IN (a, 3), coalesce(b, upper(b)), NOT a IS NULL, [a][1] FROM t"
    )
    found = plan_nodes.expressions(node(context, sql, "Projection"))
    assert columns(found) == [*"aaaaaaa", *"bbbbb"]


def test_distinct_on_comes_as_the_aggregate_that_it_is(context: SessionContext) -> None:
    on = walked(context, "SELECT DISTINCT ON (upper(b)) a FROM t ORDER BY upper(b), a")
    assert "Aggregate" in [each.kind for each in on]
    assert "Distinct" not in [each.kind for each in on]
    of_all = walked(context, "SELECT DISTINCT a FROM t")
    assert [each.kind for each in of_all] == ["Distinct", "Projection", "TableScan"]


def test_an_alias_does_not_hide_clauses() -> None:
    aliased = functions.count(col("a"), filter=col("a") > lit(1)).alias("x").alias("y")
    assert len(plan_nodes.clauses(aliased.expr).filter) == 1


def test_a_clause_of_other_bytes_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a version that numbers the fields of its messages in another way."""

    class Strange:
        def __init__(self, message: bytes) -> None:
            self._message = message

        def variant_name(self) -> str:
            return "AggregateFunction"

        def to_bytes(self) -> bytes:
            return self._message

    good = functions.count(col("a"), filter=col("a") > lit(1)).expr.to_bytes()
    (outer,) = wire.fields(good)
    garbled = wire.message(outer.tag, wire.message(3, b"\xff\xff"))
    for message in (b"", good[:-3], good + good, garbled):
        with pytest.raises(HiddenError):
            plan_nodes.clauses(Strange(message))


def test_a_plan_may_be_given_in_either_form(context: SessionContext) -> None:
    plan = context.sql("SELECT a FROM t").logical_plan()
    kinds = [each.kind for each in plan_nodes.nodes(plan)]
    assert [each.kind for each in plan_nodes.nodes(plan._raw_plan)] == kinds


def test_inside_of_a_leaf_is_itself() -> None:
    (part,) = plan_nodes.inside(Expr.literal(1).expr)
    assert (part.kind, part.clauses) == ("Literal", None)
