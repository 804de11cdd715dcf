"""The reads, writes and other effects of statements, for any text."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext
from hypothesis import given
from hypothesis import strategies as st

from caraway_engine.execution.contexts import CATALOG
from caraway_engine.statements import plan_facts, plan_nodes
from caraway_engine.statements.plan_facts import Operation, PlanFacts
from tests.kit.hostile import HOSTILE, TEMPLATES, identifier, literal

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def context() -> SessionContext:
    return made()


def made() -> SessionContext:
    config = SessionConfig().with_default_catalog_and_schema(CATALOG, "public")
    context = SessionContext(config.with_information_schema(True))
    for name in ("t", "u", "v"):
        rows = pa.RecordBatch.from_pydict({"a": [1, 2], "b": ["x", "y"]})
        context.register_record_batches(name, [[rows]])
    context.register_view("seen", context.sql("SELECT a FROM t JOIN u USING (a)"))
    return context


def of(context: SessionContext, sql: str) -> PlanFacts:
    return plan_facts.of(context.sql(sql).logical_plan())


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("template", TEMPLATES)
def test_text_that_looks_like_a_plan_changes_nothing(
    context: SessionContext, template: str, text: str
) -> None:
    harmless = template.format(text=literal("x"), name=identifier("x"))
    hostile = template.format(text=literal(text), name=identifier(text))
    expected = of(context, harmless)
    assert _without_names(of(context, hostile)) == _without_names(expected)


_CONTEXT = made()


@given(
    st.lists(st.sampled_from([*HOSTILE, "\n", "  ", "t", "caraway.public.u", ": "]), max_size=6),
    st.sampled_from(TEMPLATES),
)
def test_no_mixture_of_such_texts_changes_anything(pieces: list[str], template: str) -> None:
    text = "".join(pieces) or "x"
    hostile = template.format(text=literal(text), name=identifier(text))
    harmless = template.format(text=literal("x"), name=identifier("x"))
    found = of(_CONTEXT, hostile)
    assert _without_names(found) == _without_names(of(_CONTEXT, harmless))


def _without_names(facts: PlanFacts) -> tuple[object, ...]:
    """Leave out the aliases, which are the user's words."""
    return (
        facts.operation, facts.write, facts.has_copy, facts.scans, facts.functions,
        facts.has_join, facts.uncut, facts.is_complete, facts.reads_only_catalog,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "operation", "written"),
    [
        ("SELECT a FROM t", Operation.QUERY, None),
        ("INSERT INTO t SELECT * FROM u", Operation.WRITE, ("t", "Insert Into")),
        ("INSERT INTO caraway.public.t VALUES (1, 'x')", Operation.WRITE, ("t", "Insert Into")),
        ("UPDATE t SET a = 1 WHERE b = 'x'", Operation.WRITE, ("t", "Update")),
        ("DELETE FROM t WHERE a = 1", Operation.WRITE, ("t", "Delete")),
        ("COPY t TO '/nowhere/x.csv'", Operation.COPY, None),
        ("EXPLAIN SELECT 1", Operation.EXPLAIN, None),
        ("EXPLAIN INSERT INTO t SELECT * FROM u", Operation.EXPLAIN, ("t", "Insert Into")),
        ("EXPLAIN ANALYZE SELECT a FROM t", Operation.ANALYZE, None),
        ("EXPLAIN ANALYZE INSERT INTO t SELECT * FROM u", Operation.ANALYZE, ("t", "Insert Into")),
        ("DESCRIBE t", Operation.DESCRIBE, None),
        ("SHOW TABLES", Operation.QUERY, None),
    ],
)
def test_the_kind_of_a_statement_and_its_target(
    context: SessionContext, sql: str, operation: Operation, written: tuple[str, str] | None
) -> None:
    facts = of(context, sql)
    assert facts.operation is operation
    assert (facts.write and (facts.write.table, facts.write.name)) == written
    assert facts.is_complete
    assert not facts.reads_only_catalog or operation is Operation.QUERY


@pytest.mark.parametrize(
    ("sql", "scans"),
    [
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", {"t": 1, "u": 1}),
        ("SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u)", {"t": 1, "u": 1}),
        ("SELECT * FROM t WHERE a NOT IN (SELECT a FROM u) OR b = 'x'", {"t": 1, "u": 1}),
        ("SELECT a IN (SELECT a FROM u) FROM t", {"t": 1, "u": 1}),
        ("SELECT (SELECT max(a) FROM u WHERE u.b = t.b) FROM t", {"t": 1, "u": 1}),
        ("SELECT sum((SELECT max(a) FROM u)) FROM t", {"t": 1, "u": 1}),
        ("SELECT sum(a) OVER (ORDER BY (SELECT 1 FROM u)) FROM t", {"t": 1, "u": 1}),
        ("SELECT sum(a) FILTER (WHERE a > (SELECT 1 FROM u)) FROM t", {"t": 1, "u": 1}),
        ("SELECT * FROM t ORDER BY (SELECT max(a) FROM u)", {"t": 1, "u": 1}),
        ("SELECT * FROM t LIMIT (SELECT max(a) FROM u)", {"t": 1, "u": 1}),
        ("SELECT a FROM t GROUP BY a HAVING sum(a) > (SELECT 1 FROM u)", {"t": 1, "u": 1}),
        ("SELECT * FROM t JOIN u ON t.a = u.a AND t.a IN (SELECT a FROM v)",
         {"t": 1, "u": 1, "v": 1}),
        ("SELECT * FROM t, LATERAL (SELECT * FROM u WHERE u.a = t.a) x", {"t": 1, "u": 1}),
        ("SELECT CASE WHEN EXISTS (SELECT 1 FROM u) THEN 1 END FROM t", {"t": 1, "u": 1}),
        ("SELECT * FROM t WHERE a > (SELECT 1 FROM u WHERE a IN (SELECT a FROM v))",
         {"t": 1, "u": 1, "v": 1}),
        ("SELECT unnest([1, 2]), (SELECT max(a) FROM u)", {"u": 1}),
        ("SELECT DISTINCT ON (a) a FROM t WHERE a IN (SELECT a FROM u) ORDER BY a",
         {"t": 1, "u": 1}),
        ("SELECT sum((SELECT max(a) FROM u) + x) FROM (SELECT unnest([1, 2]) AS x)", None),
        ("SELECT t.a FROM t UNION SELECT a FROM u EXCEPT SELECT a FROM v",
         {"t": 1, "u": 1, "v": 1}),
        ("VALUES ((SELECT max(a) FROM u))", {"u": 1}),
        ("SELECT x.a FROM t x JOIN t y ON x.a = y.a", {"t": 2}),
        ("WITH t AS (SELECT 1 AS a) SELECT * FROM t", {}),
        ("WITH t AS (SELECT a FROM u) SELECT * FROM t", {"u": 1}),
        ("SELECT * FROM seen", {"t": 1, "u": 1}),
        ("DELETE FROM t WHERE a IN (SELECT a FROM u)", {"t": 1, "u": 1}),
        ("SELECT count(*) FROM t WHERE (SELECT count(*) FROM u WHERE (u.a = t.a AND u.b = 'x') "
         "OR (u.a = t.a AND u.b = 'y')) > 0", {"t": 1, "u": 1}),
    ],
)  # fmt: skip
def test_tables_are_found_wherever_they_are_read(
    context: SessionContext, sql: str, scans: dict[str, int] | None
) -> None:
    """None: a part cannot be seen, which must be said."""
    facts = of(context, sql)
    if scans is None:
        assert not facts.is_complete and not facts.reads_only_catalog and facts.uncut
    else:
        assert facts.scans == scans
        assert facts.is_complete


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT now()",
        "SELECT a FROM t WHERE random() > 0.5",
        "SELECT a FROM t ORDER BY uuid()",
        "SELECT a + 1 FROM t GROUP BY a HAVING max(a) > random()",
        "SELECT sum(a) FILTER (WHERE random() > 0.5) FROM t",
        "SELECT array_agg(a ORDER BY random()) FROM t",
        "SELECT sum(a) OVER (PARTITION BY random()) FROM t",
        "SELECT sum(a) OVER (ORDER BY random()) FROM t",
        "SELECT count(*) FROM t GROUP BY ROLLUP (a, random())",
        "SELECT count(*) FROM t GROUP BY GROUPING SETS ((a), (random()))",
        "SELECT * FROM t JOIN u ON t.a = u.a AND random() > 0.5",
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND now() > '2020-01-01')",
        "SELECT * FROM t WHERE a IN (SELECT a FROM u WHERE random() > 0.5)",
        "SELECT (SELECT max(a) FROM u WHERE random() > 0.5) FROM t",
        "SELECT CASE WHEN current_date > '2020-01-01' THEN 1 END",
        "VALUES (random())",
        "SELECT unnest([random()])",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM t WHERE b IN (SELECT table_name FROM information_schema.tables)",
        "SHOW TABLES",
    ],
)
def test_what_depends_on_the_moment_is_volatile_wherever_it_is(
    context: SessionContext, sql: str
) -> None:
    assert of(context, sql).is_volatile


def test_every_function_that_the_engine_calls_volatile_is_known(context: SessionContext) -> None:
    routines = context.sql(
        "SELECT DISTINCT routine_name AS name FROM information_schema.routines "
        "WHERE NOT is_deterministic AND function_type = 'SCALAR'"
    ).to_pydict()["name"]
    calls = {"input_file_name": None, "file_row_index": None}
    for name in routines:
        if name not in calls:
            assert of(context, f"SELECT {name}()").is_volatile, name
    assert set(calls) <= plan_facts.VOLATILE


@pytest.mark.parametrize(
    ("sql", "uncut"),
    [
        ("SELECT * FROM t WHERE a NOT IN (SELECT a FROM u)", "null_aware"),
        ("SELECT * FROM t WHERE NOT (a IN (SELECT a FROM u) AND b = 'x')", "null_aware"),
        ("SELECT * FROM t WHERE a IN (SELECT a FROM u WHERE a NOT IN (SELECT a FROM v))",
         "null_aware"),
        ("SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", None),
        ("SELECT first_value(a) IGNORE NULLS FROM t", "IGNORE NULLS"),
        ("SELECT lag(a) IGNORE NULLS OVER (ORDER BY b) FROM t", "IGNORE NULLS"),
        ("SELECT sum(a) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
         "a window frame with an offset"),
        ("SELECT sum(a) OVER (ORDER BY a GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
         "a window frame with an offset"),
        ("SELECT sum(a) OVER (ORDER BY a) FROM t", None),
        ("SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t", None),
        ("SELECT sum(a) FILTER (WHERE b = 'x') OVER () FROM t",
         "a window function with FILTER or DISTINCT"),
        ("SELECT count(DISTINCT a) OVER (PARTITION BY b) FROM t",
         "a window function with FILTER or DISTINCT"),
        ("SELECT count(*) FROM t GROUP BY CUBE (a, b)", "GROUPING SETS"),
        ("SELECT unnest([1])", "Unnest"),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) "
         "SELECT * FROM r", "RecursiveQuery"),
        ("SELECT a FROM t WHERE (SELECT max(s) FROM (SELECT first_value(a) IGNORE NULLS AS s "
         "FROM u)) > 1", "IGNORE NULLS"),
    ],
)  # fmt: skip
def test_what_a_plan_in_pieces_would_lose(
    context: SessionContext, sql: str, uncut: str | None
) -> None:
    assert of(context, sql).uncut == uncut


@pytest.mark.parametrize(
    ("sql", "may_spill"),
    [
        ("SELECT * FROM t CROSS JOIN u", True),
        ("SELECT * FROM t LEFT JOIN u ON t.a = u.a AND t.a < 5", True),
        ("SELECT * FROM t JOIN u ON t.a < u.a", False),
        ("SELECT * FROM t LEFT JOIN u ON t.a < u.a", False),
        ("SELECT * FROM t CROSS JOIN v WHERE t.a > (SELECT max(u.a) FROM u JOIN v ON u.a < 5 OR "
         "v.a < u.a)", False),
        ("SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE t.a < u.a)", False),
    ],
)  # fmt: skip
def test_only_cross_joins_may_spill(context: SessionContext, sql: str, may_spill: bool) -> None:
    dataframe = context.sql(sql)
    before = plan_facts.of(dataframe.logical_plan())
    found = plan_facts.optimized(dataframe.optimized_logical_plan(), before)
    assert found.may_spill is may_spill


@pytest.mark.parametrize(
    ("sql", "has_product"),
    [
        ("SELECT * FROM t CROSS JOIN u", True),
        ("SELECT * FROM t JOIN u ON t.a < u.a", True),
        ("SELECT * FROM t JOIN u ON t.a = u.a", False),
        ("SELECT * FROM t, u WHERE t.a = u.a", False),
        ("SELECT * FROM t WHERE a > (SELECT max(a) FROM u)", False),
        ("SELECT * FROM t WHERE a > (SELECT max(u.a) FROM u CROSS JOIN v)", True),
        ("SELECT 'Cross Join:' AS \"\n  Cross Join:\" FROM t WHERE b = '\nInner Join: '", False),
    ],
)
def test_products_are_found_also_in_subqueries(
    context: SessionContext, sql: str, has_product: bool
) -> None:
    dataframe = context.sql(sql)
    before = plan_facts.of(dataframe.logical_plan())
    found = plan_facts.optimized(dataframe.optimized_logical_plan(), before)
    assert found.has_product is has_product


@pytest.mark.parametrize(
    ("sql", "is_so"),
    [
        ("SELECT * FROM t", True),
        ("SELECT b AS c FROM (SELECT a, b FROM t) AS x", True),
        ("SELECT a + 1 FROM t", False),
        ("SELECT 1 FROM t", False),
        ("SELECT * FROM t LIMIT 1", False),
        ("SELECT * FROM t WHERE a = 1", False),
        ("SELECT * FROM t ORDER BY a", False),
        ("SELECT DISTINCT a FROM t", False),
        ("SELECT * FROM t UNION ALL SELECT * FROM t", False),
        ("SELECT * FROM t, u", False),
        ("SELECT a, (SELECT max(a) FROM u) FROM t", False),
        ("EXPLAIN SELECT * FROM t", False),
        ("INSERT INTO t SELECT * FROM u", False),
    ],
)
def test_statement_that_only_names_columns_is_known(
    context: SessionContext, sql: str, is_so: bool
) -> None:
    assert of(context, sql).names_columns_only is is_so


def test_an_optimized_plan_says_what_it_reads(context: SessionContext) -> None:
    sql = "SELECT * FROM t WHERE a > (SELECT max(a) FROM u) AND EXISTS (SELECT 1 FROM v)"
    dataframe = context.sql(sql)
    before = plan_facts.of(dataframe.logical_plan())
    found = plan_facts.optimized(dataframe.optimized_logical_plan(), before)
    assert found.scans == {"t", "u", "v"}


def test_a_long_chain_is_walked_to_its_end(context: SessionContext) -> None:
    chain = " OR ".join(f"a = {n}" for n in range(400))
    facts = of(context, f"SELECT * FROM t WHERE random() = 2 OR {chain}")
    assert facts.is_volatile and facts.is_complete
    deep = of(context, f"SELECT * FROM t WHERE a IN (SELECT a FROM u) OR {chain}")
    assert deep.scans == {"t": 1, "u": 1} and deep.is_complete


def test_a_node_without_a_variant_is_never_read_only() -> None:
    class Strange:
        def to_variant(self) -> object:
            raise RuntimeError("no such variant")

        def inputs(self) -> list[object]:
            return []

    facts = plan_facts.of(Strange())
    assert facts.operation is Operation.UNKNOWN
    assert facts.uncut == plan_nodes.UNKNOWN
    assert not facts.is_complete and not facts.reads_only_catalog and facts.is_volatile


def test_names_are_those_of_the_manifest() -> None:
    assert plan_facts.table_name(None, None, "t") == "t"
    assert plan_facts.table_name("caraway", "public", "t") == "t"
    assert plan_facts.table_name(None, "sales", "t") == "sales.t"
    assert plan_facts.table_name("shop", "public", "t") == "shop.public.t"
    assert plan_facts.is_system(plan_facts.table_name("shop", "information_schema", "tables"))
    assert plan_facts.is_system(plan_facts.table_name("caraway", "runtime", "task_history"))
    assert not plan_facts.is_system(plan_facts.table_name(None, None, "runtime"))


_PLAN_TEXT = re.compile(
    r"display_indent|display_graphviz|TableScan: |SubqueryAlias: |CopyTo:|Dml: |Cross Join:"
)
_EXPLAINS = {"engine/caraway_engine/stages/stage_schemas.py"}
_COMPARES = {"engine/caraway_engine/sharing/memory_files.py"}
"""Compares the texts of two plans of one engine; where they differ, neither is used."""


def test_no_module_reads_a_displayed_plan() -> None:
    """The only use of such a text is to show it to the user."""
    found = {
        str(path.relative_to(ROOT))
        for package in (
            *("core", "engine", "executor", "plugins", "scheduler"),
            *("acceleration", "assist", "gateway"),
        )
        for path in (ROOT / package).rglob("*.py")
        if _PLAN_TEXT.search(path.read_text())
    }
    assert found == _EXPLAINS | _COMPARES
