"""Aggregates in two phases have the result of one phase, for any distribution of rows."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st
from substrait.algebra_pb2 import Rel

from caraway_core.protocols.fleet import TaskTable
from caraway_engine.execution.contexts import CATALOG
from caraway_engine.stages import aggregates, fragments
from caraway_engine.stages.fragments import Inputs
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.inputs import INPUT_PREFIX, INPUT_SCHEMA
from caraway_engine.stages.policy import Policy
from caraway_engine.stages.relations import kind, walk
from caraway_engine.stages.stage_schemas import StageSchemas
from tests.engine.stages.planning import MB, context, substrait

SQL = "SELECT dim, {} FROM facts GROUP BY dim"


def aggregate(select: str) -> tuple[Rel, Functions]:
    plan, _ = substrait(context()[0], SQL.format(select))
    rel = plan.relations[0].root.input
    return next(each for each in walk(rel) if kind(each) == "aggregate"), Functions(plan)


@pytest.mark.parametrize(
    ("select", "slots"),
    [
        ("sum(id)", ((1, False),)),
        ("count(*), min(word), max(day)", ((1, False), (2, False), (3, False))),
        ("avg(weight)", ((1, True),)),
        ("avg(price), sum(price)", ((1, True), (3, False))),
        ("bool_and(id > 1), bit_or(id)", ((1, False), (2, False))),
        ("sum(id) FILTER (WHERE other > 1)", ((1, False),)),
        ("stddev(weight)", None),
        ("array_agg(id)", None),
        ("first_value(id ORDER BY day)", None),
        ("median(weight)", None),
        ("approx_distinct(id)", None),
        ("sum(id), corr(weight, weight)", None),
    ],
)
def test_only_what_can_be_put_together_is_cut(
    select: str, slots: tuple[tuple[int, bool], ...] | None
) -> None:
    rel, functions = aggregate(select)
    cut = aggregates.decompose(rel, rel.aggregate.input, functions)
    assert (cut and cut.slots) == slots
    if cut is not None:
        assert cut.groups == 1
        names = [functions.name(each.measure.function_reference)
                 for each in cut.partial.aggregate.measures]  # fmt: skip
        assert "avg" not in names


def test_a_distinct_or_ordered_aggregate_is_not_cut() -> None:
    rel, functions = aggregate("sum(id)")
    distinct = Rel()
    distinct.CopyFrom(rel)
    measure = distinct.aggregate.measures[0].measure
    measure.invocation = measure.AGGREGATION_INVOCATION_DISTINCT
    assert aggregates.decompose(distinct, rel.aggregate.input, functions) is None
    sets = Rel()
    sets.CopyFrom(rel)
    sets.aggregate.groupings.add()
    assert aggregates.decompose(sets, rel.aggregate.input, functions) is None


MEASURES = (
    "count(*) AS a, count(n) AS b, sum(n) AS c, min(s) AS d, max(n) AS e, avg(w) AS f, "
    "avg(p) AS h, sum(p) AS i, sum(n) FILTER (WHERE n > 1) AS j"
)
SCHEMA = pa.schema([("g", pa.int64()), ("n", pa.int64()), ("s", pa.string()),
                    ("p", pa.decimal128(9, 2)), ("w", pa.float64())])  # fmt: skip
ROW = st.fixed_dictionaries({
    "g": st.none() | st.integers(0, 2),
    "n": st.none() | st.integers(-(2**40), 2**40),
    "s": st.none() | st.sampled_from(["", "a", "Z", "ä"]),
    "p": st.none() | st.decimals(-9_999, 9_999, places=2),
    "w": st.none() | st.sampled_from([0.5, -2.25, 1024.0, -0.0]),
})  # fmt: skip


def over(rows: Sequence[dict[str, Any]]) -> tuple[SessionContext, Inputs]:
    config = SessionConfig().with_target_partitions(1)
    made = SessionContext(config.with_default_catalog_and_schema(CATALOG, "public"))
    made.register_record_batches("r", [[pa.RecordBatch.from_pylist(list(rows), SCHEMA)]])
    inputs = Inputs()
    made.catalog(CATALOG).register_schema(INPUT_SCHEMA, inputs)
    return made, inputs


def ordered(rows: Sequence[dict[str, Any]]) -> list[list[Any]]:
    return sorted((list(row.values()) for row in rows), key=lambda row: (row[0] is None, str(row)))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.lists(ROW, max_size=8), st.integers(0, 8))
def test_two_phases_answer_as_one(rows: list[dict[str, Any]], split: int) -> None:
    whole, inputs = over(rows)
    plan, _ = substrait(whole, f"SELECT g, {MEASURES} FROM r GROUP BY g")
    functions = Functions(plan)
    rel = next(each for each in walk(plan.relations[0].root.input) if kind(each) == "aggregate")
    cut = aggregates.decompose(rel, rel.aggregate.input, functions)
    assert cut is not None
    schemas = StageSchemas(whole, inputs)
    partial = functions.plan(cut.partial)
    schema = schemas.schema(partial, "s1")
    batches: list[pa.RecordBatch] = []
    for part in (rows[:split], rows[split:]):
        made, own = over(part)
        for batch in fragments.plan(made, partial, own, []).collect():
            batches.append(pa.RecordBatch.from_arrays(
                [column.cast(field.type) for column, field in zip(batch.columns, schema,
                                                                  strict=True)], schema=schema
            ))  # fmt: skip
    name = INPUT_PREFIX + "s1"
    types = schemas.types(schemas.schema(functions.plan(rel)))
    final = aggregates.merge(rel, cut, schemas.leaf(name, schema), functions, types)
    table = TaskTable(name, schema, (pa.Table.from_batches(batches, schema),))
    found = fragments.plan(whole, functions.plan(final), inputs, [table])
    expected = fragments.plan(whole, functions.plan(rel), inputs, [])
    assert pa.schema(found.schema()).types == pa.schema(expected.schema()).types
    assert ordered(found.to_pylist()) == ordered(expected.to_pylist())


@pytest.mark.parametrize(
    ("size", "other", "slots", "memory", "may"),
    [
        (16 * MB, 0, 4, 8 * 1024 * MB, True),
        (16 * MB + 1, 16 * MB, 2, 8 * 1024 * MB, False),
        (17 * MB, 17 * MB, 2, 8 * 1024 * MB, True),
        (17 * MB, 17 * MB, 3, 8 * 1024 * MB, False),
        (17 * MB, 34 * MB, 3, 8 * 1024 * MB, True),
        (MB, 10**12, 2, 8 * MB, True),
        (MB + 1, 10**12, 2, 8 * MB, False),
    ],
)
def test_a_side_is_sent_to_all_where_that_moves_less_and_fits(
    size: int, other: int, slots: int, memory: int, may: bool
) -> None:
    assert Policy().may_broadcast(size, other, slots, memory) is may


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 2**45), st.integers(1, 50), st.integers(2**20, 2**36))
def test_partitions_are_even_over_the_slots_and_fit(size: int, slots: int, memory: int) -> None:
    policy = Policy()
    count = policy.partitions(size, slots, memory)
    most = min(policy.partition_bytes, memory / 8)
    assert count >= slots and count % slots == 0
    assert size / count <= most
    assert count == slots or size / (count - slots) > most, "no more than it needs"
