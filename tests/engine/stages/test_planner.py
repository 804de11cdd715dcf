import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.ids import TableName
from caraway_engine.stages import ReadMode, Stage
from caraway_engine.stages.inputs import INPUT_PREFIX
from tests.engine.stages.planner_statements import STATEMENTS
from tests.engine.stages.planning import (
    LARGE,
    MB,
    Planned,
    context,
    planned,
    planned_from,
    substrait,
)


def check(made: Planned) -> None:
    known: dict[str, Stage] = {}
    for stage in made.stages:
        for reading in stage.readings:
            assert reading.stage in known, "a stage reads only what comes before it: no cycles"
            source = known[reading.stage]
            extra = source.hashed.extra if source.hashed else 0
            assert reading.schema == source.schema if not extra else (
                list(reading.schema) == list(source.schema)[:-extra]
            )  # fmt: skip
            if reading.mode is ReadMode.PARTITION:
                assert source.hashed is not None
                assert stage.layout == "partitions"
                assert stage.count == source.hashed.count
            assert f"{INPUT_PREFIX}{reading.stage}".encode() in stage.plan
        names = [reading.stage for reading in stage.readings]
        assert len({(each.stage, each.mode) for each in stage.readings}) == len(names)
        assert stage.plan.count(INPUT_PREFIX.encode()) >= len(set(names))
        assert made.schemas.schema(stage.plan, stage.name) == stage.schema
        assert not stage.tables or stage.layout == "slots"
        assert stage.name not in known, "each input is produced once"
        known[stage.name] = stage
    read = {reading.stage for stage in made.stages for reading in stage.readings}
    for earlier, later in zip(made.graphs, made.graphs[1:], strict=False):
        assert dict(earlier.stages).items() <= dict(later.stages).items()
    assert made.root.hashed is None
    assert read <= set(known)


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize("size", [1000, 50 * MB, 10 * LARGE], ids=["small", "middle", "large"])
def test_every_graph_is_whole_and_its_schemas_meet(sql: str, size: int) -> None:
    check(planned(sql, lambda _stage: size))


@settings(deadline=None, max_examples=40, derandomize=True)
@given(st.sampled_from(STATEMENTS), st.integers(1, 7), st.integers(0, 2**32))
def test_graphs_hold_for_any_sizes_and_slots(sql: str, slots: int, seed: int) -> None:
    sizes = random.Random(seed)
    check(planned(sql, lambda _stage: int(10 ** sizes.uniform(0, 11)), slots))


def test_the_same_sizes_give_the_same_graph() -> None:
    made, _ = context()
    plan, _ = substrait(made, STATEMENTS[-2])

    assert planned_from(plan).graph == planned_from(plan).graph


def test_a_small_table_alone_needs_no_exchange() -> None:
    made = planned("SELECT label, count(*) FROM dims GROUP BY label")

    assert not made.graph.stages
    assert made.root.layout == "single"


def test_filters_and_projections_run_where_the_data_is() -> None:
    made = planned("SELECT id + 1 FROM facts WHERE weight > 2", slots=3)

    assert not made.graph.stages
    assert (made.root.layout, made.root.count) == ("slots", 3)
    assert made.root.tables == {"facts"}


def test_a_small_table_is_joined_without_moving_anything() -> None:
    made = planned("SELECT f.id, label FROM facts f JOIN dims d ON f.dim = d.dim")

    assert not made.graph.stages
    assert made.root.layout == "slots"


def test_a_side_measured_small_is_broadcast_to_the_shares_of_the_other() -> None:
    made = planned("SELECT f.*, amount FROM facts f JOIN more m ON f.id = m.id")

    assert [stage.tables for stage in made.graph.stages.values()] == [{"more"}]
    assert made.root.tables == {"facts"}
    assert [reading.mode for reading in made.root.readings] == [ReadMode.ALL]


def test_a_join_of_few_rows_is_the_small_side_of_the_next_one() -> None:
    sql = (
        "SELECT m.amount, f.word FROM facts f JOIN dims d ON f.dim = d.dim "
        "JOIN more m ON f.id = m.id WHERE d.label = 'x'"
    )
    rows = {frozenset(map(TableName, ("facts", "dims"))): 1000.0}

    few, plain = planned(sql, joined_rows=rows), planned(sql)

    assert few.graph.stages["s1"].tables == {"facts"}
    assert few.root.tables == {"more"}
    assert plain.graph.stages["s1"].tables == {"more"}
    assert plain.root.tables == {"facts"}


def test_a_side_measured_large_is_parted_by_hash_with_the_other() -> None:
    sql = "SELECT f.id, amount FROM facts f JOIN more m ON f.id = m.id"

    made = planned(sql, lambda _stage: 10 * LARGE)

    assert made.root.layout == "partitions"
    assert [reading.mode for reading in made.root.readings] == [ReadMode.PARTITION] * 2
    hashed = [stage.hashed for stage in made.graph.stages.values() if stage.hashed]
    assert {each.keys for each in hashed} == {(0,)}
    assert len({made.graph.stages[each.stage].hashed for each in made.root.readings}) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT f.dim, o.other FROM facts f JOIN facts o ON f.id = o.id",
        "SELECT f.dim, o.other FROM facts f FULL JOIN facts o ON f.id = o.id",
        "SELECT f.dim, o.other FROM facts f RIGHT JOIN facts o ON f.id + 1 = o.id * 2",
    ],
)
def test_a_side_that_seems_large_is_written_once_for_a_hash_join(sql: str) -> None:
    made = planned(sql, lambda stage: stage.estimate_bytes * 11 // 10)

    assert made.notes() == ["one side of a join", "one side of a hash join"]
    assert made.root.layout == "partitions"
    assert [reading.mode for reading in made.root.readings] == [ReadMode.PARTITION] * 2


def test_a_side_that_seemed_large_is_broadcast_if_it_is_measured_small() -> None:
    made = planned("SELECT f.*, amount FROM facts f JOIN more m ON f.id = m.id")

    (stage,) = made.graph.stages.values()
    assert stage.hashed is not None
    assert [reading.mode for reading in made.root.readings] == [ReadMode.ALL]


def test_partitions_that_turn_out_too_few_are_made_again() -> None:
    made = planned(
        "SELECT f.id, amount FROM facts f JOIN more m ON f.id = m.id", lambda _stage: 10 * LARGE
    )

    first = made.graph.stages["s1"]
    assert first.hashed is not None
    again = [
        stage.hashed.count
        for stage in made.graph.stages.values()
        if stage.hashed and "s1" in {each.stage for each in stage.readings}
    ]
    assert again == [made.root.count]
    assert made.root.count > first.hashed.count


def test_a_small_preserved_side_reduces_the_other_before_they_meet() -> None:
    sql = "SELECT m.id, f.word FROM more m LEFT JOIN facts f ON f.id = m.id WHERE m.amount > 3"

    made = planned(sql, lambda _stage: 3 * MB)

    assert "rows that have a match" in made.notes()
    assert made.root.layout == "slots"
    assert made.root.readings[0].mode is ReadMode.OWN


def test_few_rows_of_a_reduced_join_are_joined_by_one_task() -> None:
    sql = "SELECT m.id, f.word FROM more m LEFT JOIN facts f ON f.id = m.id WHERE m.amount > 3"

    made = planned(sql, lambda _stage: MB)

    assert made.root.layout == "single"
    assert [reading.mode for reading in made.root.readings] == [ReadMode.ALL] * 2


def test_a_whole_table_does_not_reduce_the_rows_that_refer_to_it() -> None:
    sql = "SELECT m.id, f.word FROM more m LEFT JOIN facts f ON f.id = m.id"

    made = planned(sql, lambda _stage: 3 * MB)
    assert made.notes() == ["one side of a join", "one side of a join"]
    assert [reading.mode for reading in made.root.readings] == [ReadMode.OWN, ReadMode.ALL]

    made = planned(sql, lambda stage: MB if stage.tables == {"more"} else LARGE)
    assert "rows that have a match" not in made.notes()
    assert [reading.mode for reading in made.root.readings] == [ReadMode.PARTITION] * 2


EXISTS = (
    "SELECT m.label FROM mids m WHERE m.label > 'x' "
    "AND {} (SELECT 1 FROM facts f WHERE f.dim = m.dim)"
)


@pytest.mark.parametrize("word", ["EXISTS", "NOT EXISTS"])
def test_a_small_table_is_divided_where_a_stage_reads_it_alone(word: str) -> None:
    made = planned(EXISTS.format(word), lambda _stage: 3 * MB, slots=3)

    first = made.graph.stages["s1"]
    assert (first.layout, first.count) == ("slots", 3)
    assert first.tables == {"mids"}
    assert made.root.readings[0].mode is ReadMode.OWN


def test_a_tiny_table_is_not_divided() -> None:
    made = planned(EXISTS.format("EXISTS").replace("mids", "dims"), slots=3)

    assert made.graph.stages["s1"].layout == "single"


@pytest.mark.parametrize(
    "rows",
    [
        "(SELECT DISTINCT dim, label FROM mids)",
        "(SELECT dim, row_number() OVER (ORDER BY dim) AS label FROM mids)",
        "(SELECT * FROM mids LIMIT 10)",
        "(SELECT a.dim, b.label FROM mids a JOIN dims b ON a.dim = b.dim)",
    ],
    ids=["groups", "window", "limit", "join"],
)
def test_a_small_table_of_which_rows_depend_on_others_is_not_divided(rows: str) -> None:
    made = planned(
        f"SELECT m.label FROM {rows} m LEFT JOIN facts f ON f.dim = m.dim", lambda _stage: MB
    )

    assert [each.layout for each in made.stages if "mids" in each.tables] == []


def test_few_groups_are_put_together_by_one_task_and_many_by_their_hash() -> None:
    sql = "SELECT dim, sum(price) FROM facts GROUP BY dim"

    few, many = planned(sql), planned(sql, lambda _stage: 10 * LARGE)

    assert few.root.layout == "single"
    assert many.root.layout == "partitions"
    assert next(reversed(list(many.graph.stages.values()))).hashed is not None


def test_groups_that_seem_many_are_written_once() -> None:
    made = planned("SELECT dim, sum(price) FROM facts GROUP BY dim", lambda _stage: 50 * MB)

    assert made.notes() == ["partial aggregate"]
    assert made.root.layout == "partitions"


def test_partitions_are_as_many_as_memory_asks_for() -> None:
    sql = "SELECT dim, sum(price) FROM facts GROUP BY dim"

    made = planned(sql, lambda _stage: 4 * LARGE)

    assert made.root.count >= 2 * 4 * LARGE / (128 * MB) / 2


def test_a_join_on_the_keys_of_its_groups_moves_nothing_again() -> None:
    made = planned(
        "SELECT dim, sum(n) FROM (SELECT dim, word, count(*) n FROM facts GROUP BY dim, word) t "
        "GROUP BY dim", lambda _stage: 10 * LARGE,
    )  # fmt: skip

    assert made.root.layout == "partitions"


def test_top_rows_are_taken_by_each_task_and_then_of_all() -> None:
    made = planned("SELECT * FROM facts ORDER BY price LIMIT 3 OFFSET 2")

    assert made.notes() == ["first rows"]
    assert made.root.layout == "single"
    (reading,) = made.root.readings
    assert reading.mode is ReadMode.TOP_K
    assert reading.top is not None and reading.top.count == 5
    (key,) = reading.top.keys
    assert str(reading.schema.field(key.column).type) == "decimal128(15, 2)"
    assert (key.is_descending, key.has_nulls_first) == (False, False)


def test_a_count_of_a_join_carries_no_columns_but_loses_no_rows() -> None:
    made = planned("SELECT count(*) FROM facts f LEFT JOIN dims d ON f.id < d.dim")

    check(made)


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
@pytest.mark.parametrize(
    "own", ["a.id = a.other", "b.other = b.dim", "a.dim = a.other AND a.id > 1"]
)
def test_columns_of_one_side_that_are_equal_are_no_pair_of_a_join(kind: str, own: str) -> None:
    rows = "(SELECT id, dim, other FROM facts UNION ALL SELECT id, dim, amount FROM more)"
    made = planned(
        f"SELECT a.id, b.dim FROM {rows} a {kind} JOIN {rows} b ON a.id = b.id AND {own}",
        lambda _stage: LARGE,
    )
    for stage in made.stages:
        made.schemas._planned(stage.plan).optimized_logical_plan()
