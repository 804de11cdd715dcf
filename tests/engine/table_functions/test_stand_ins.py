"""Tables that stand for calls: only the statement that is planned sees them, with its own rows."""

import threading

import pyarrow as pa
import pytest
from datafusion import SessionContext
from datafusion.catalog import Catalog
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.ids import TableName
from caraway_core.statements import GivenRows
from caraway_engine.table_functions import stand_ins

T = TableName("search$1.f")
SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string()), ("score", pa.float64())])


@pytest.fixture
def context() -> SessionContext:
    made = SessionContext()
    catalog: Catalog = made.catalog()
    for name in ("search$1", "search$2"):
        catalog.register_schema(name, stand_ins.SearchSchema(name))
    return made


def _read(context: SessionContext) -> list[object]:
    values: list[object] = context.sql('SELECT a FROM "search$1".f').to_pydict()["a"]
    return values


def test_a_table_is_seen_only_while_its_statement_is_planned(context: SessionContext) -> None:
    rows = GivenRows.named(T, pa.table({"a": [2, 1]}))
    with stand_ins.shown_rows([rows]):
        assert _read(context) == [2, 1]
        with stand_ins.shown({T: stand_ins.empty(SCHEMA)}):
            assert _read(context) == []
        assert _read(context) == [2, 1]
        with pytest.raises(Exception, match="not found"):
            context.sql('SELECT * FROM "search$2".f')
    with pytest.raises(Exception, match="not found"):
        _read(context)


def test_another_thread_does_not_see_it(context: SessionContext) -> None:
    seen: list[object] = []

    def look() -> None:
        try:
            seen.extend(_read(context))
        except Exception as exc:
            seen.append(type(exc))

    with stand_ins.shown_rows([GivenRows.named(T, pa.table({"a": [1]}))]):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen and seen != [1]


def test_it_is_gone_after_an_error(context: SessionContext) -> None:
    with pytest.raises(ZeroDivisionError), stand_ins.shown({T: stand_ins.empty(SCHEMA)}):
        raise ZeroDivisionError
    with pytest.raises(Exception, match="not found"):
        _read(context)


def test_rows_get_the_columns_of_their_call() -> None:
    rows = pa.table({"score": [0.5, None], "a": pa.array([7, 8], pa.int64()), "other": [1, 2]})
    table = stand_ins.filled(GivenRows.named(T, rows, SCHEMA))
    context = SessionContext()
    context.register_table("t", table)
    found = context.sql("SELECT * FROM t").to_arrow_table()
    assert found.schema.names == SCHEMA.names and found.schema.types == SCHEMA.types
    assert found.to_pylist() == [
        {"a": 7, "b": None, "score": 0.5},
        {"a": 8, "b": None, "score": None},
    ]
    with pytest.raises(pa.ArrowInvalid):
        stand_ins.filled(GivenRows.named(T, pa.table({"a": [2**40]}), SCHEMA))


@given(st.lists(st.text(max_size=8), min_size=2, max_size=6, unique=True))
def test_the_calls_of_views_never_share_a_schema(names: list[str]) -> None:
    made = [stand_ins.schema_name(1, TableName(name)) for name in names]
    assert len(set(made)) == len(names)
    for schema in made:
        assert stand_ins.is_stand_in(schema)
        # It can be written without quotes.
        assert all(each.isascii() and (each.isalnum() or each in "_$") for each in schema)
        assert stand_ins.without_schemas(f'no column "{schema}".f.x') == "no column f.x"
        assert stand_ins.without_schemas(f"no column {schema}.f.x") == "no column f.x"
