import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_engine.known_faults import KnownSchemas, mend, scopes, syntax
from caraway_engine.known_faults.scopes import Types


@pytest.fixture
def context() -> SessionContext:
    made = SessionContext()
    made.from_arrow(pa.table({"x": pa.array([1], pa.int64()), "s": ["a"]}), "t")
    return made


def types_of(context: SessionContext, sql: str, known: KnownSchemas) -> list[pa.DataType | None]:
    (statement,) = syntax.parse(sql)
    (scope,) = scopes.scopes(statement)
    items = [each["UnnamedExpr"] for each in scope.select["projection"]]
    return Types(context, {}, known).of(scope, items)


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
