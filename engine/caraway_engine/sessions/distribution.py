"""Analyses a planned statement: which tables it reads and whether it can be distributed."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from datafusion import SessionContext
from datafusion.substrait import Producer
from google.protobuf.message import DecodeError
from substrait.plan_pb2 import Plan

from caraway_core.ids import TableName
from caraway_core.partitions import matching
from caraway_core.partitions.keys import BucketKey
from caraway_core.tables import TableSpec
from caraway_engine.join_orders.joined_rows import JoinedRows
from caraway_engine.remote import unfolding
from caraway_engine.rows import coercion
from caraway_engine.sharing import pruning
from caraway_engine.stages import Buckets, TableFacts, TableReads, safety
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.reads import table_reads
from caraway_engine.stages.relations import kind, table_name, walk
from caraway_engine.statements import plan_facts
from caraway_engine.statements.plan_facts import Operation, PlanFacts


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of analysing a statement: its tables, its schema and its distributable plan.

    `plan` is set if the statement may be distributed; otherwise `objection` says why not. `schema`
    is the schema of the result. `tables` are the catalog tables that it reads or writes.
    """

    schema: pa.Schema
    tables: frozenset[TableName]
    reads_system: bool
    reads_only_catalog: bool
    written: TableName | None
    is_diagnostic: bool
    plan: Plan | None
    objection: str | None
    reads: TableReads
    """The columns of each read of the tables that may be divided."""
    filters: pruning.Reads
    """What the filters of `plan` require of the tables that it reads."""
    is_answered: bool = False
    """True if a database answers the whole plan, and does more than to read and filter."""
    joined_rows: JoinedRows = field(default_factory=dict)
    """The estimated rows of joins, as far as facts are known."""


def analyse(
    context: SessionContext,
    dataframe: Any,
    facts: PlanFacts,
    *,
    is_product: bool,
    specs: Mapping[TableName, TableSpec],
    optimized: object = None,
    found: Container[TableName] = (),
) -> Analysis:
    """Analyse a planned statement. This takes a millisecond or two, as planning is done.

    `optimized` is the optimized plan, if it is already known. Tables in `found` come with the
    statement, and with its tasks.
    """
    written = facts.write.table if facts.write else None
    plan: Plan | None = None
    objection: str | None = None
    schema = pa.schema(dataframe.schema())
    scans = frozenset(facts.scans)
    if facts.operation is not Operation.QUERY:
        objection = "a statement that does more than read runs whole"
    elif is_product:
        objection = "a join without equal keys runs whole"
    else:
        optimized = optimized or dataframe.optimized_logical_plan()
        scans = plan_facts.optimized(optimized, facts).scans
        plan, objection = _cut(context, optimized, facts.uncut, specs, scans, found)
        schema = coercion.of_optimized(context, optimized, schema)
    return Analysis(
        schema,
        _tables(scans, facts, specs),
        any(map(plan_facts.is_system, scans)),
        facts.reads_only_catalog,
        written,
        facts.is_diagnostic,
        plan,
        objection,
        _divisible_reads(plan, specs) if plan else {},
        pruning.reads(plan) if plan else {},
    )


def writing(analysis: Analysis, table: TableName) -> Analysis:
    """Return the analysis of a statement that writes a table: it runs whole, and once."""
    return replace(
        analysis,
        written=table,
        reads_only_catalog=False,
        plan=None,
        objection="a statement that does more than read runs whole",
        reads={},
        filters={},
        is_answered=False,
    )


def _tables(
    scans: frozenset[TableName], facts: PlanFacts, specs: Mapping[TableName, TableSpec]
) -> frozenset[TableName]:
    """Return the catalog tables of a plan. A table with cast columns appears only as an alias."""
    if not facts.is_complete:
        return frozenset(specs)
    written = {facts.write.table} if facts.write else set()
    files = {name for name in facts.aliases if name in specs and specs[name].scans}
    return ((scans | written) & specs.keys()) | files


def _cut(
    context: SessionContext,
    optimized: object,
    uncut: str | None,
    specs: Mapping[TableName, TableSpec],
    scans: frozenset[TableName],
    container: Container[TableName],
) -> tuple[Plan | None, str | None]:
    try:
        encoded = Producer.to_substrait_plan(optimized, context).encode()
    except Exception as exc:  # noqa: BLE001 -- the engine refuses what Substrait cannot express
        return None, f"it cannot be expressed in Substrait ({str(exc).splitlines()[0][:200]})"
    plan = Plan()
    try:
        plan.ParseFromString(encoded)
    except DecodeError:  # Messages have at most 100 levels: about 22 joins, one above the other.
        return None, "its plan has too many levels to be sent; it runs whole"
    read = [specs[name] for name in scans & specs.keys()]
    if any(spec.is_external for spec in read):
        # The engine cannot apply a constant filter inside the read of a remote table.
        # Move filters out of the reads.
        root = plan.relations[0].root
        root.input.CopyFrom(unfolding.unfolded(root.input))
        if any(spec.scans for spec in read):
            return None, "it reads remote tables and files together"
    objection = safety.objection(plan, uncut, Functions(plan)) or _foreign(plan, specs, container)
    return (None, objection) if objection else (plan, None)


def _foreign(
    plan: Plan, specs: Mapping[TableName, TableSpec], container: Container[TableName]
) -> str | None:
    for rel in walk(plan.relations[0].root.input):
        if kind(rel) == "read" and table_name(rel) not in container:
            name = table_name(rel)
            if name not in specs or not specs[name].is_shareable:
                return f"table '{name}' cannot be divided among executors"
    return None


def _divisible_reads(plan: Plan, specs: Mapping[TableName, TableSpec]) -> TableReads:
    """Return the reads of each divisible table, without tables that share files with another.

    A task identifies its share of a table by file, so it cannot tell such tables apart.
    """
    every = table_reads(plan.relations[0].root.input)
    reads = {name: found for name, found in every.items() if name in specs}
    paths = {name: _paths(specs[name]) for name in reads}
    return {
        name: found
        for name, found in reads.items()
        if not any(_overlap(paths[name], paths[other]) for other in reads if other != name)
    }


def _paths(spec: TableSpec) -> frozenset[str]:
    return frozenset(path for scan in spec.scans for path in scan.paths)


def _overlap(some: frozenset[str], others: frozenset[str]) -> bool:
    if some & others:
        return True
    folders = [path for path in some | others if path.endswith("/")]
    return any(
        one.startswith(folder)
        for folder in folders
        for one in (some if folder in others else others)
    )


def facts(
    specs: Mapping[TableName, TableSpec], whole: Container[TableName] = ()
) -> dict[TableName, TableFacts]:
    """Return the table facts for the stage planner. Tables in `whole` are never divided."""
    return {
        name: TableFacts(
            spec.size_bytes,
            len(spec.schema),
            spec.is_divisible and name not in whole,
            spec.version is not None,
            _buckets(spec),
            spec.column_bytes,
            spec.row_count,
        )
        for name, spec in specs.items()
        if spec.query is None and spec.first_rows is None
    }


def _buckets(spec: TableSpec) -> Buckets | None:
    version = spec.version
    group = matching.colocation(version.cut, spec.schema) if version is not None else None
    if version is None or group is None:
        return None
    (term,) = version.cut.terms
    assert isinstance(term, BucketKey)
    return Buckets(group, spec.schema.get_field_index(term.column))
