"""Texts of a MERGE as SQL of the database, and those that it may not compute."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_core.protocols.remote import TABLE_ALIAS
from caraway_core.sqltext import merge_statements
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_engine.remote.merge_terms import MergeTerms, MergeText, UntranslatedError

SCHEMA = pa.schema(
    [("k", pa.int64()), ("n", pa.int32()), ("word", pa.string()), ("d", pa.float64())]
)
SOURCE = pa.schema([("k", pa.int64()), ("n", pa.int32()), ("w", pa.string())])
TABLE = RemoteTable(
    SCHEMA, "postgres", ("t",), tuple(RemoteColumn(each.name, each.type, True) for each in SCHEMA),
    {},
)  # fmt: skip
MERGE = (
    "MERGE INTO own.t AS t USING given AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = t.n + s.n"
)


@pytest.fixture
def plan() -> Callable[[str], Any]:
    context = SessionContext()
    context.sql("CREATE SCHEMA own").collect()
    for name, schema in (("own.t", SCHEMA), ("given", SOURCE)):
        made = context.from_arrow(schema.empty_table())
        context.register_view("made", made)
        context.sql(f"CREATE TABLE {name} AS SELECT * FROM made").collect()
        context.deregister_table("made")
    run: Callable[[str], Any] = context.sql
    return run


def terms() -> MergeTerms:
    return MergeTerms(TABLE, merge_statements.parse(MERGE), SOURCE)


def test_a_condition_of_both_sides_reads_the_table_and_operands(
    plan: Callable[[str], Any],
) -> None:
    made, part = terms(), MergeText("t.n < s.n AND t.word = s.w")
    made.translate([part], plan)

    assert part in made
    for name in ("n", "word"):
        assert f'{TABLE_ALIAS}."{name}"' in made[part]
    assert made.operands == {"n": "operand 1", "w": "operand 2"}
    assert '"operand 1"' in made[part] and '"operand 2"' in made[part]


def test_a_part_of_the_source_alone_stays_with_the_engine(plan: Callable[[str], Any]) -> None:
    made, part = terms(), MergeText("s.n > 1", None)
    made.translate([part], plan)

    assert part not in made
    assert made.operands == {}


def test_a_part_of_the_table_alone_needs_no_source(plan: Callable[[str], Any]) -> None:
    made, part = terms(), MergeText("n IS NULL", is_alone=True)
    made.translate([part], plan)

    assert "IS NULL" in made[part]
    assert made.operands == {}
    with pytest.raises(Exception, match="s"):
        terms().translate([MergeText("s.n > 1", is_alone=True)], plan)


def test_a_new_value_has_the_type_of_its_column(plan: Callable[[str], Any]) -> None:
    made = terms()
    null, sum_ = MergeText("CAST(NULL AS INT)", "n", is_alone=True), MergeText("t.n + s.n", "n")
    made.translate([null, sum_], plan)

    assert made[null] == f'CASE WHEN 1 = 0 THEN {TABLE_ALIAS}."n" END'
    assert "+" in made[sum_]
    assert made.operands == {"n": "operand 1"}


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("t.word = upper(s.w)", None),
        ("t.n", None),
        ("t.d", "n"),
        ("md5(t.word)", "word"),
        ("t.word LIKE s.w", None),
    ],
)
def test_parts_that_the_database_may_compute_otherwise(
    plan: Callable[[str], Any], text: str, column: str | None
) -> None:
    made, part = terms(), MergeText(text, column)
    with pytest.raises(UntranslatedError) as caught:
        made.translate([MergeText("t.k = s.k"), part], plan)
    assert caught.value.part == part
    assert str(caught.value) == text


def test_nothing_is_planned_for_no_parts(plan: Callable[[str], Any]) -> None:
    made = terms()
    made.translate([], lambda sql: pytest.fail(f"planned {sql}"))
    assert made.types == {"k": pa.int64(), "n": pa.int32(), "w": pa.string()}
