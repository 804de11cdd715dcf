"""The list of the engine's functions is that of the engine."""

from datafusion import SessionConfig, SessionContext

from caraway_core.sqltext import builtin_functions, searching
from caraway_engine.searching import embedding, function_names


def test_the_names_are_those_of_the_engine() -> None:
    context = SessionContext(SessionConfig().with_information_schema(enabled=True))
    sql = (
        "SELECT DISTINCT routine_name AS name, function_type AS kind "
        "FROM information_schema.routines"
    )
    found: dict[str, set[str]] = {}
    for row in context.sql(sql).to_pylist():
        found.setdefault(row["kind"], set()).add(row["name"])
    assert found["AGGREGATE"] == builtin_functions.AGGREGATES
    assert found["WINDOW"] - found["AGGREGATE"] == builtin_functions.WINDOWS
    assert found["SCALAR"] | found["TABLE"] == builtin_functions.SCALARS


def test_the_names_of_the_runtime_are_known() -> None:
    scoring = {
        value for name, value in vars(function_names).items()
        if name.isupper() and isinstance(value, str)
    }  # fmt: skip
    assert {*embedding.NAMES, *searching.FUNCTIONS, *scoring} == builtin_functions.OF_THE_RUNTIME
