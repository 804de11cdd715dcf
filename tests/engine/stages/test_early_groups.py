import pytest
from substrait.algebra_pb2 import Rel

from caraway_engine.stages import ReadMode
from caraway_engine.stages.early_groups import group_before_joins
from caraway_engine.stages.fragments import Inputs
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.stage_schemas import StageSchemas
from tests.engine.stages.planning import LARGE, MB, context, planned, substrait

JOIN = "LEFT JOIN facts f ON f.dim = d.dim"
COUNTS = f"SELECT d.dim, count(f.id) FROM dims d {JOIN} GROUP BY d.dim"


def is_grouped_first(sql: str, may_group: bool = True) -> bool:
    made, _ = context()
    plan, _ = substrait(made, sql)
    root: Rel = plan.relations[0].root.input
    schemas = StageSchemas(made, Inputs())
    grouped: Rel = group_before_joins(root, Functions(plan), schemas, lambda _l, _r: may_group)
    return bool(grouped.SerializeToString() != root.SerializeToString())


@pytest.mark.parametrize(
    "values",
    [
        "count(f.id)",
        "sum(f.price), min(f.word), max(f.day)",
        "avg(f.price)",
        "avg(f.other)",
        "bit_xor(f.other)",
        "count(f.id), count(f.price)",
    ],
)
def test_aggregates_that_merge_are_grouped_first(values: str) -> None:
    assert is_grouped_first(f"SELECT d.dim, {values} FROM dims d {JOIN} GROUP BY d.dim")


@pytest.mark.parametrize(
    ("values", "join"),
    [
        ("count(*)", JOIN),
        ("count(DISTINCT f.id)", JOIN),
        ("sum(f.id + 1)", JOIN),
        ("count(f.id) FILTER (WHERE f.other > 1)", JOIN),
        ("count(f.id), max(d.label)", JOIN),
        ("median(f.price)", JOIN),
        ("sum(CAST(f.word AS BIGINT))", JOIN),
        ("count(f.id)", f"{JOIN} AND f.id > d.dim"),
        ("count(f.id)", "LEFT JOIN facts f ON f.weight = CAST(d.dim AS DOUBLE)"),
        ("count(f.id)", "LEFT JOIN facts f ON f.dim % 7 = d.dim"),
        ("count(f.id)", "JOIN facts f ON f.dim = d.dim"),
        ("count(f.id)", "FULL JOIN facts f ON f.dim = d.dim"),
    ],
)
def test_rows_that_a_value_needs_one_by_one_are_not_grouped_first(values: str, join: str) -> None:
    assert not is_grouped_first(f"SELECT d.dim, {values} FROM dims d {join} GROUP BY d.dim")


@pytest.mark.parametrize("by", ["f.other", "d.dim, f.other", "d.dim + 1", "ROLLUP (d.dim)"])
def test_groups_that_are_not_columns_of_the_left_side_stay_above(by: str) -> None:
    assert not is_grouped_first(f"SELECT count(f.id) FROM dims d {JOIN} GROUP BY {by}")


def test_a_statement_without_groups_stays_as_it_is() -> None:
    assert not is_grouped_first(f"SELECT count(f.id) FROM dims d {JOIN}")


def test_nothing_is_grouped_first_against_the_facts() -> None:
    assert not is_grouped_first(COUNTS, may_group=False)


def test_rows_are_grouped_where_they_are() -> None:
    made = planned(COUNTS)

    (stage,) = made.graph.stages.values()
    assert stage.note == "partial aggregate"
    assert stage.tables == {"facts"}
    assert len(stage.schema) == 2
    assert made.root.layout == "single"
    assert [reading.mode for reading in made.root.readings] == [ReadMode.ALL]


def test_rows_are_grouped_by_several_keys() -> None:
    made = planned(
        "SELECT d.label, sum(f.price) FROM dims d "
        "LEFT JOIN facts f ON f.dim = d.dim AND f.word = d.label GROUP BY d.label"
    )

    assert made.notes() == ["partial aggregate"]
    assert len(made.graph.stages["s1"].schema) == 3


def test_many_groups_stay_where_their_hash_brings_them() -> None:
    made = planned(COUNTS, lambda stage: LARGE if stage.tables else MB // 10)

    parted = {reading.stage for reading in made.root.readings}
    assert {reading.mode for reading in made.root.readings} == {ReadMode.PARTITION}
    assert "one side of a hash join" in {made.graph.stages[name].note for name in parted}
    assert len({made.graph.stages[name].hashed for name in parted}) == 1


def test_rows_that_a_filtered_side_reduces_are_not_grouped_first() -> None:
    made = planned(COUNTS.replace("GROUP", "WHERE d.label > 'x' GROUP"))

    assert made.notes()[0] != "partial aggregate"


def test_a_side_of_about_the_same_size_is_not_grouped_first() -> None:
    made = planned(
        "SELECT m.id, count(f.amount) FROM more m LEFT JOIN more f ON f.dim = m.id GROUP BY m.id"
    )

    assert made.notes()[0] == "one side of a join"
