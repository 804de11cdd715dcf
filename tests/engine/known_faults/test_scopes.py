import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_core.sqltext import builtin_functions
from caraway_engine.known_faults import KnownSchemas, mend, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from tests.engine.known_faults.memory import Asked

# Each computes with the largest BIGINT, in a place where types are hard to find.
OVERFLOWING = (
    "WITH big AS (SELECT x FROM big) SELECT x + 1 FROM big",
    "WITH q AS (SELECT x FROM big), big AS (SELECT x FROM q) SELECT x + 1 FROM big",
    "WITH RECURSIVE n AS (SELECT x, 1 AS i FROM big UNION ALL SELECT x + 1, i + 1 FROM n "
    "WHERE i < 3) SELECT x FROM n",
    "SELECT * FROM (WITH big AS (SELECT x FROM big) SELECT x + 1 FROM big) q",
    "SELECT id FROM big o WHERE EXISTS (SELECT 1 FROM big WHERE x + o.id < 0)",
    "SELECT id FROM big o WHERE id IN (SELECT id FROM big WHERE x + o.id < 0)",
    "SELECT id FROM big o WHERE 0 > (SELECT max(x) + 1 FROM big WHERE big.id = o.id)",
    'SELECT "a""b" + 1 FROM (SELECT x AS "a""b" FROM big) q',
    'SELECT "É" + 1 FROM (SELECT x AS "É" FROM big) "Q"',
    "SELECT X + 1 FROM BIG",
    "SELECT [x][1] + 1 FROM big",
    "SELECT s.a + 1 FROM (SELECT named_struct('a', x) AS s FROM big) q",
    "SELECT unnest([x]) + 1 FROM big",
    "SELECT x /* + */ + -- 1\n 1 FROM big",
    "SELECT DISTINCT ON (id) x + 1 FROM big ORDER BY id",
    "SELECT id FROM big GROUP BY id ORDER BY max(x) + 1",
    "SELECT x + 1 AS y, count(*) FROM big GROUP BY ALL",
    "SELECT max(x) + 1 FROM big GROUP BY ROLLUP (id)",
    "(SELECT x + 1 FROM big) UNION ALL (SELECT 1) ORDER BY 1",
    "SELECT * FROM big WHERE x BETWEEN x + 1 AND 5",
    "VALUES (9223372036854775807 + 1)",
)


@pytest.mark.parametrize("sql", OVERFLOWING)
def test_the_types_of_a_scope_are_found(asked: Asked, sql: str) -> None:
    asked.engine(sql)

    with pytest.raises(Exception, match="out of range Int64"):
        asked.mended(sql)


def test_a_lateral_subquery_sees_the_tables_before_it(asked: Asked) -> None:
    # The engine plans it, and cannot run it yet.
    text = asked.text("SELECT z FROM big, LATERAL (SELECT big.x + 1 AS z) q")

    assert "DECIMAL" in text


def test_a_subquery_in_from_does_not_see_the_tables_before_it() -> None:
    (statement,) = syntax.parse("SELECT * FROM t, (SELECT 1) q, LATERAL (SELECT 2) r")

    outer, inner, lateral = scopes.scopes(statement)

    assert inner.parent is None
    assert lateral.parent is outer


def test_a_cte_that_is_not_recursive_is_not_in_its_own_scope() -> None:
    (statement,) = syntax.parse("WITH t AS (SELECT x FROM t) SELECT x FROM t")

    inner, outer = scopes.scopes(statement)

    assert inner.with_ is None
    assert [syntax.spelled(each["alias"]["name"]) for each in outer.with_["cte_tables"]] == ["t"]
    assert not outer.with_["recursive"]


def test_all_aggregates_and_random_functions_of_the_engine_are_known() -> None:
    assert scopes.AGGREGATES >= builtin_functions.AGGREGATES
    assert scopes.VOLATILE == builtin_functions.RANDOM


@pytest.fixture
def context() -> SessionContext:
    made = SessionContext()
    made.from_arrow(pa.table({"x": pa.array([1], pa.int64()), "s": ["a"]}), "t")
    return made


def types_of(context: SessionContext, sql: str, known: KnownSchemas) -> list[pa.DataType | None]:
    (statement,) = syntax.parse(sql)
    (scope,) = scopes.scopes(statement)
    items = [each["UnnamedExpr"] for each in scope.select["projection"]]
    return Types(context, {}, known).types_of(scope, items)


def test_types_are_asked_of_the_engine_once(context: SessionContext) -> None:
    known = KnownSchemas()
    first = types_of(context, "SELECT x + 1, s FROM t WHERE x > 1", known)
    context.deregister_table("t")

    again = types_of(context, "SELECT x + 1, s FROM t WHERE x > 2", known)

    assert again == first == [pa.int64(), pa.string()]


def test_what_cannot_be_planned_is_asked_again(context: SessionContext) -> None:
    known = KnownSchemas()
    assert types_of(context, "SELECT y FROM u", known) == [None]
    context.from_arrow(pa.table({"y": pa.array([1.5])}), "u")

    assert types_of(context, "SELECT y FROM u", known) == [pa.float64()]


def test_parameters_of_other_types_are_asked_for_themselves(context: SessionContext) -> None:
    known = KnownSchemas()
    whole = mend(context, "SELECT x + $a FROM t", {"a": pa.scalar(2**62)}, known=known)

    assert whole is not None
    assert mend(context, "SELECT x + $a FROM t", {"a": pa.scalar(1.5)}, known=known) is None


def test_only_the_schemas_that_came_last_are_kept() -> None:
    known = KnownSchemas()
    schema = pa.schema([("x", pa.int64())])
    for number in range(1100):
        known.remember(str(number), schema)

    assert known.recall("0") is None
    assert known.recall("1099") == schema


def test_comments_hide_no_operator(context: SessionContext) -> None:
    plain = mend(context, "SELECT x * x AS y FROM t")
    assert plain is not None
    assert mend(context, "SELECT x /* /* */ */ * x AS y FROM t") == plain
    assert mend(context, "SELECT x FROM t /* x * x */") is None
