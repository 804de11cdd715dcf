"""Which settings a plan must do without, and that it does."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext

from caraway_engine.execution import contexts
from caraway_engine.known_faults import names

HASH_JOINS = "datafusion.optimizer.prefer_hash_join"
DYNAMIC_FILTERS = {
    "datafusion.optimizer.enable_join_dynamic_filter_pushdown",
    "datafusion.optimizer.enable_topk_dynamic_filter_pushdown",
}
STRAYING = (
    "SELECT s.id AS s, q.a, q.b FROM ends s JOIN (SELECT a.id AS a, b.id AS b FROM paths a "
    "LEFT JOIN ends b ON a.ty = b.id WHERE concat(a.id, coalesce(b.id, '')) <> 'q') q ON s.id = q.b"
)


@pytest.fixture
def context(tmp_path: Path) -> SessionContext:
    made = SessionContext(SessionConfig().with_target_partitions(1).with_information_schema(True))
    for name, rows in {"paths": {"id": ["a1"], "ty": ["x1"]}, "ends": {"id": ["x1"]}}.items():
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
        made.register_parquet(name, str(tmp_path / f"{name}.parquet"))
    return made


@pytest.mark.parametrize(
    ("sql", "off"),
    [
        ("SELECT a.id, b.id AS b FROM paths a JOIN ends b ON a.ty = b.id", set()),
        ("SELECT b.id FROM paths a RIGHT JOIN ends b ON a.ty = b.id", set()),
        ("SELECT a.ty FROM paths a LEFT JOIN ends b ON a.ty = b.id WHERE b.id IS NULL", set()),
        (
            "SELECT b.id FROM paths a RIGHT JOIN ends b ON a.ty = b.id WHERE a.id IS NULL",
            {HASH_JOINS, *DYNAMIC_FILTERS},
        ),
        (
            "SELECT a.id, b.id AS b FROM paths a JOIN ends b ON a.ty = b.id ORDER BY b.id LIMIT 1",
            DYNAMIC_FILTERS,
        ),
        (STRAYING, DYNAMIC_FILTERS),
    ],
)
def test_only_what_can_send_a_filter_astray_is_off(
    sql: str, off: set[str], context: SessionContext
) -> None:
    assert names.forbidden(context, context.sql(sql).optimized_logical_plan()) == off


def test_a_dynamic_filter_is_not_sent_to_another_column(context: SessionContext) -> None:
    frame = context.sql(STRAYING)
    off = names.forbidden(context, frame.optimized_logical_plan())

    assert frame.to_pylist() == [], "the engine was mended: this module may go"
    assert names.without(context, frame, off).to_pylist() == [{"s": "x1", "a": "a1", "b": "x1"}]


def test_settings_are_as_before_for_the_next_plan() -> None:
    # Of a session: those that a session switches off for good must stay off, too.
    context = contexts.without_statistics(1)
    context.from_pydict({"id": ["a1"], "ty": ["x1"]}, name="paths")
    context.from_pydict({"id": ["x1"]}, name="ends")
    before = _settings(context)
    frame = context.sql("SELECT b.id FROM paths a JOIN ends b ON a.ty = b.id")

    made = names.without(context, frame, frozenset({HASH_JOINS, *DYNAMIC_FILTERS}))

    assert "SortMergeJoin" in made.execution_plan().display_indent()
    assert "SortMergeJoin" not in context.sql(STRAYING).execution_plan().display_indent()
    assert _settings(context) == before


def _settings(context: SessionContext) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = context.sql(
        "SELECT name, value FROM information_schema.df_settings ORDER BY name"
    ).to_pylist()
    return rows
