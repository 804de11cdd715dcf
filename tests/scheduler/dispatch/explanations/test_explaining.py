"""EXPLAIN in words: every stage with its place, and the measurements of each executor."""

from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_engine.routing import Described
from caraway_engine.stages import ExchangeRead, ReadMode, Stage, StageGraph
from caraway_engine.stages.graph import Hashed
from caraway_scheduler.dispatch.explanations import explaining
from caraway_scheduler.dispatch.explanations.explaining import (
    ExplainedStream,
    RootCount,
    TextStream,
)
from caraway_scheduler.dispatch.tasks.reports import FinishedTask
from tests.kit.stream_double import StreamDouble

SCHEMA = pa.schema({"n": pa.int64()})
T = TableName("orders")


def read(stage: str, mode: ReadMode) -> ExchangeRead:
    return ExchangeRead(stage, mode, stage, SCHEMA)


SCAN = Stage(
    "s1", b"", SCHEMA, "slots", 3, tables=frozenset({T}), hashed=Hashed((0, 2), 4), note="scans"
)
JOIN = Stage(
    "s2", b"", SCHEMA, "partitions", 4,
    (read("s1", ReadMode.PARTITION), read("s0", ReadMode.ALL)), note="joins", colocated=("a, b",),
)  # fmt: skip
ROOT = Stage("root", b"", SCHEMA, "single", 1, (read("s2", ReadMode.OWN),), note="answer")
DESCRIBED = Described(
    frozenset({T}),
    StageGraph({"s1": SCAN, "s2": JOIN}, ROOT),
    {"s1": "TableScan\n  filter", "s2": "Join", "root": "Sort"},
    {T: " (2 of 9 partitions)"},
)


def executor(number: int) -> ExecutorId:
    return ExecutorId(f"e{number % 2}")


def test_stages_are_listed_last_first_each_with_its_fragment() -> None:
    lines = explaining.listed(DESCRIBED, executor).splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert [head.split(":")[0] for head in heads[1:]] == ["root", "s2", "s1"]
    assert "estimates" in heads[0]
    assert lines[-2:] == ["    TableScan", "      filter"]


def test_headline_counts_tasks_and_names_each_executor_once() -> None:
    text = explaining.listed(DESCRIBED, executor)
    assert "s1: scans: 3 tasks on e0, e1\n" in text
    assert "root: answer: 1 task\n" in text, "where it ends is decided when it runs"
    alone = Stage("root", b"", SCHEMA, "single", 1, tables=frozenset({T}), note="reads")
    only = Described(frozenset({T}), StageGraph({}, alone), {"root": ""}, {T: ""})
    assert "root: reads: 1 task on e0" in explaining.listed(only, executor)


def test_exchanges_shares_and_hashes_are_told() -> None:
    text = explaining.listed(DESCRIBED, executor)
    for line in (
        "  reads s1: its hash partition",
        "  reads s0: all rows",
        "  reads s2: its own part",
        "  reads its share of orders (2 of 9 partitions)",
        "  joins co-located tables without an exchange: a, b",
        "  partitions its rows by the hash of c0, c2 into 4",
    ):
        assert line in text.splitlines()


def test_what_ran_is_told_under_its_stage_with_the_size_of_the_answer() -> None:
    ran = [
        FinishedTask(QueryId("q"), stage, "", number, ExecutorId("e9"), 10 + number, 80, 1.25, 0)
        for stage, number in (("s1", 0), ("s1", 1), ("s2", 0))
    ]
    count = RootCount()
    count.add(pa.record_batch({"n": pa.array([1, 2, 3], pa.int64())}))
    count.add(pa.record_batch({"n": pa.array([], pa.int64())}))
    lines = explaining.listed(DESCRIBED, executor, ran, count).splitlines()
    assert "  3 rows, 24 bytes" in lines
    at = [index for index, line in enumerate(lines) if line.startswith("  task 1 on e9: 11 rows")]
    assert len(at) == 1 and at[0] > lines.index(next(each for each in lines if each[:2] == "s1"))
    assert not any("estimates" in line for line in lines)


@pytest.mark.parametrize(("objection", "word"), [(None, "small"), ("it has a lock", "a lock")])
def test_statement_that_runs_whole_says_why(objection: str | None, word: str) -> None:
    assert word in explaining.whole(objection)


async def test_text_is_one_row_for_each_kind_and_comes_once() -> None:
    stream = TextStream({"a": "x", "b": "y\nz"})
    (batch,) = [batch async for batch in stream]
    assert batch.to_pylist() == [
        {"plan_type": "a", "plan": "x"},
        {"plan_type": "b", "plan": "y\nz"},
    ]
    assert [batch async for batch in stream] == []
    closed = TextStream({"a": "x"})
    await closed.aclose()
    assert [batch async for batch in closed] == []


class Engine(StreamDouble):
    """The stream of the engine for a statement itself."""

    reads_only_catalog = False
    written = None

    def __init__(self, schema: pa.Schema, *batches: pa.RecordBatch) -> None:
        self.schema = schema
        self._batches = iter(batches)
        self.is_closed = False

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        for batch in self._batches:
            return batch
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
async def test_words_of_the_cluster_follow_in_the_types_of_the_engine(type_: pa.DataType) -> None:
    schema = pa.schema({"plan_type": type_, "plan": type_})
    own = pa.RecordBatch.from_arrays(
        [pa.array(["logical"], type_), pa.array(["p"], type_)], schema=schema
    )
    engine = Engine(schema, own)
    stream = ExplainedStream(engine, {"distributed_plan": "d"})
    batches = [batch async for batch in stream]
    assert all(batch.schema.equals(schema) for batch in batches)
    assert [row["plan_type"] for batch in batches for row in batch.to_pylist()] == [
        "logical",
        "distributed_plan",
    ]
    await stream.aclose()
    assert engine.is_closed


async def test_engine_with_other_columns_is_left_as_it_is() -> None:
    schema = pa.schema({"plan": pa.string()})
    own = pa.record_batch({"plan": ["p"]})
    batches = [batch async for batch in ExplainedStream(Engine(schema, own), {"d": "x"})]
    assert batches == [own]
