"""Plans statements over tables without rows, with sizes made up by the test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.substrait import Producer
from substrait.plan_pb2 import Plan

from caraway_core.ids import TableName
from caraway_engine.execution.contexts import CATALOG
from caraway_engine.join_orders.joined_rows import JoinedRows
from caraway_engine.stages import (
    Cluster,
    Measured,
    Stage,
    StageGraph,
    TableFacts,
    safety,
)
from caraway_engine.stages.fragments import Inputs
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.inputs import INPUT_SCHEMA
from caraway_engine.stages.planner import Planner
from caraway_engine.stages.reads import table_reads
from caraway_engine.stages.stage_schemas import StageSchemas
from caraway_engine.stages.visits import VISITS
from caraway_engine.statements import plan_facts

MB = 2**20
LARGE = 1000 * MB
SCHEMAS = {
    "facts": pa.schema(
        {
            "id": pa.int64(), "dim": pa.int64(), "other": pa.int64(), "word": pa.string_view(),
            "price": pa.decimal128(15, 2), "weight": pa.float64(), "day": pa.date32(),
        }
    ),
    "more": pa.schema({"id": pa.int64(), "dim": pa.int64(), "amount": pa.int32()}),
    "dims": pa.schema({"dim": pa.int64(), "label": pa.string_view()}),
    "mids": pa.schema({"dim": pa.int64(), "label": pa.string_view()}),
    "odd": pa.schema({"id": pa.int64(), "s1_c0": pa.int64()}),
}  # fmt: skip
ROW_BYTES = 50
SIZES = {"facts": LARGE, "more": LARGE // 2, "dims": MB, "mids": 10 * MB, "odd": LARGE}


@dataclass(frozen=True, slots=True)
class Planned:
    """Every graph on the way to the last one, and what answers questions about fragments."""

    graphs: tuple[StageGraph, ...]
    schemas: StageSchemas
    planner: Planner

    @property
    def graph(self) -> StageGraph:
        return self.graphs[-1]

    @property
    def root(self) -> Stage:
        assert self.graph.root is not None
        return self.graph.root

    @property
    def stages(self) -> Iterator[Stage]:
        yield from self.graph.stages.values()
        yield self.root

    def notes(self) -> list[str]:
        return [stage.note for stage in self.graph.stages.values()]


def context() -> tuple[SessionContext, Inputs]:
    made = SessionContext(
        SessionConfig().with_target_partitions(2).with_default_catalog_and_schema(CATALOG, "public")
    )
    for name, schema in SCHEMAS.items():
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        made.register_record_batches(name, [[empty]])
    inputs = Inputs()
    made.catalog(CATALOG).register_schema(INPUT_SCHEMA, inputs)
    return made, inputs


def substrait(made: SessionContext, sql: str) -> tuple[Plan, str | None]:
    """Plan a statement; also say what a plan in pieces would lose of it."""
    dataframe = made.sql(sql)
    optimized = dataframe.optimized_logical_plan()
    plan = Plan()
    plan.ParseFromString(Producer.to_substrait_plan(optimized, made).encode())
    return plan, plan_facts.of(dataframe.logical_plan()).uncut


def objection(sql: str) -> str | None:
    made, _ = context()
    plan, uncut = substrait(made, sql)
    return safety.objection(plan, uncut, Functions(plan))


def planned(
    sql: str,
    measure: Callable[[Stage], int] = lambda _stage: MB,
    slots: int = 2,
    joined_rows: JoinedRows = MappingProxyType({}),
) -> Planned:
    """Plan to the end, each stage being as large as `measure` says."""
    plan, uncut = substrait(context()[0], sql)
    assert safety.objection(plan, uncut, Functions(plan)) is None
    return planned_from(plan, measure, slots, joined_rows)


def planned_from(
    plan: Plan,
    measure: Callable[[Stage], int] = lambda _stage: MB,
    slots: int = 2,
    joined_rows: JoinedRows = MappingProxyType({}),
) -> Planned:
    made, inputs = context()
    schemas = StageSchemas(made, inputs)
    tables = {
        TableName(name): TableFacts(
            SIZES[name],
            len(schema),
            True,
            rows=SIZES[name] // ROW_BYTES,
            column_bytes={each: SIZES[name] // len(schema) for each in schema.names},
        )
        for name, schema in SCHEMAS.items()
    }
    cluster = Cluster(slots, 8 * 1024 * MB, tables)
    reads = table_reads(plan.relations[0].root.input)
    divided = cluster.divided(reads) | cluster.spread(reads)
    planner = Planner(plan, cluster, schemas, divided, VISITS, joined_rows)
    sizes: dict[str, Measured] = {}
    graphs = [planner.advance(sizes)]
    while graphs[-1].root is None:
        new = [stage for name, stage in graphs[-1].stages.items() if name not in sizes]
        assert new, "the graph has no root, and nothing left to be measured"
        sizes.update({stage.name: Measured(10, measure(stage)) for stage in new})
        graphs.append(planner.advance(sizes))
    return Planned(tuple(graphs), schemas, planner)
