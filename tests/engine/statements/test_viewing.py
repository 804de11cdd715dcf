"""The tables that a statement may name and see while it is planned."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from datafusion import SessionContext
from datafusion.catalog import Table

from caraway_core.ids import PrincipalId, TableName
from caraway_core.statements import Statement
from caraway_engine.statements import viewing
from caraway_engine.statements.viewing import SourceSchema, SystemSchema

Limit = Callable[[], AbstractContextManager[None]]
ONE = Table(ds.dataset(pa.table({"a": [1]})))


def statement(sources: set[str] | None = None, viewer: str | None = None) -> Statement:
    names = None if sources is None else frozenset(map(TableName, sources))
    return Statement("", {}, sources=names, viewer=PrincipalId(viewer) if viewer else None)


ASKED = ("orders", "Orders", "caraway_source.orders", "other", "none")


def names_found(schema: SourceSchema) -> set[str]:
    found = {name for name in ASKED if schema.table(name) is not None}
    assert found == {name for name in ASKED if schema.table_exist(name)}
    return found


@pytest.fixture
def sources() -> SourceSchema:
    return SourceSchema({"orders": ONE, "other": ONE})


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        (lambda: viewing.limits_of(statement()), {"orders", "other"}),
        (lambda: viewing.limits_of(statement(set())), set()),
        (lambda: viewing.limits_of(statement({"caraway_source.orders"})), {"orders"}),
        (lambda: viewing.limits_of(statement({"orders"})), set()),
        (lambda: viewing.limits_of(statement({"caraway_source.none"})), set()),
        (viewing.without_sources, set()),
        (viewing.with_sources, {"orders", "other"}),
    ],
)
def test_a_source_is_found_by_whoever_may_name_it(
    sources: SourceSchema, limit: Limit, found: set[str]
) -> None:
    with limit():
        assert names_found(sources) == found
        assert sources.table_names == [], "it is never listed"


def test_limits_end_with_their_block_also_after_an_error(sources: SourceSchema) -> None:
    with viewing.without_sources():
        with pytest.raises(RuntimeError), viewing.with_sources():
            assert names_found(sources) == {"orders", "other"}
            raise RuntimeError
        assert names_found(sources) == set()
        with viewing.limits_of(statement({"caraway_source.other"})):
            assert names_found(sources) == {"other"}
        assert names_found(sources) == set()
    assert names_found(sources) == {"orders", "other"}


def test_limits_of_one_thread_are_not_those_of_another(sources: SourceSchema) -> None:
    seen: list[set[str]] = []
    with viewing.without_sources():
        thread = threading.Thread(target=lambda: seen.append(names_found(sources)))
        thread.start()
        thread.join()
        assert names_found(sources) == set()
    assert seen == [{"orders", "other"}]


@pytest.mark.parametrize(
    ("name", "is_source"),
    [
        ("caraway_source.orders", True),
        ("caraway_source.a.b", True),
        ("caraway_source", False),
        ("caraway_sources.orders", False),
        ("Caraway_source.orders", False),
        ("sales.caraway_source.orders", False),
        ("", False),
    ],
)
def test_a_source_is_told_by_its_schema(name: str, is_source: bool) -> None:
    assert viewing.is_source(name) is is_source


@pytest.mark.parametrize(
    "name",
    [
        "caraway_source.orders",
        '"caraway_source"."orders"',
        "datafusion.caraway_source.orders",
        'CARAWAY_SOURCE."orders"',
    ],
)
def test_no_way_to_write_the_name_gets_round_the_limit(sources: SourceSchema, name: str) -> None:
    context = SessionContext()
    context.catalog().register_schema("caraway_source", sources)
    with viewing.without_sources(), pytest.raises(Exception, match="not found"):
        context.sql(f"SELECT * FROM {name}")
    with viewing.with_sources():
        assert context.sql(f"SELECT * FROM {name}").to_pylist() == [{"a": 1}]


def test_a_copy_of_sources_is_limited_too_and_changes_alone(sources: SourceSchema) -> None:
    copy = sources.copy()
    copy.deregister_table("orders")
    assert (names_found(copy), names_found(sources)) == ({"other"}, {"orders", "other"})
    with viewing.without_sources():
        assert names_found(copy) == set()


def test_a_system_table_is_made_at_each_look_for_its_viewer() -> None:
    viewers: list[PrincipalId | None] = []

    def make(viewer: PrincipalId | None) -> pa.Table:
        viewers.append(viewer)
        return pa.table({"n": [len(viewers)], "viewer": [viewer or "all"]})

    schema = SystemSchema({TableName("tasks"): make, TableName("a"): make})
    context = SessionContext()
    context.catalog().register_schema("runtime", schema)
    assert schema.table_names == ["a", "tasks"]
    assert (schema.table_exist("tasks"), schema.table_exist("Tasks")) == (True, False)
    assert schema.table("none") is None and viewers == []
    for viewer in ("ann", None, "bob"):
        before = len(viewers)
        with viewing.limits_of(statement(viewer=viewer)):
            (row,) = context.sql("SELECT * FROM runtime.tasks").to_pylist()
        assert row["viewer"] == (viewer or "all")
        assert row["n"] > before
    assert set(viewers) == {"ann", None, "bob"}


def test_system_table_without_rows_can_be_sorted_joined_and_filtered() -> None:
    columns = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.list_(pa.string()))])
    schema = SystemSchema({TableName("none"): lambda _viewer: columns.empty_table()})
    context = SessionContext()
    context.catalog().register_schema("runtime", schema)
    for sql in (
        "SELECT b FROM runtime.none ORDER BY a",
        "SELECT l.a FROM runtime.none AS l JOIN runtime.none AS r ON l.a = r.a WHERE l.a > 1",
        "SELECT a, count(*) FROM runtime.none GROUP BY a ORDER BY a LIMIT 1",
    ):
        assert context.sql(sql).to_pylist() == []
    assert context.sql("SELECT count(*) AS n FROM runtime.none").to_pylist() == [{"n": 0}]
