"""The ways in which a statement can run on a cluster, as values that any process can read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.fleet import Share
from caraway_engine.stages import StageGraph


@dataclass(frozen=True, slots=True)
class Here:
    """Runs on the scheduler's own engine: it reads only what the scheduler knows, or no table."""

    tables: frozenset[TableName]


@dataclass(frozen=True, slots=True)
class NoneReady:
    """Needs an executor, but none is ready."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Looks up rows of `table` by key. `owner` has all of them; None: any executor has."""

    table: TableName
    owner: ExecutorId | None


@dataclass(frozen=True, slots=True)
class Whole:
    """Runs whole on one executor: the owner of the in-memory tables that it reads, if any.

    `objection` says why it is not split into stages; None means that what it reads is small.
    """

    tables: frozenset[TableName]
    written: TableName | None
    objection: str | None
    is_at_owner: bool = False


@dataclass(frozen=True, slots=True)
class Staged:
    """Runs in stages on all executors, with one task per executor in each divided stage.

    `graph` is planned as far as sizes are known. `shares` has what each slot reads of each divided
    table. The router keeps the planner until it is asked to forget it.
    """

    tables: frozenset[TableName]
    schema: pa.Schema = field(repr=False)
    reads_only_catalog: bool
    graph: StageGraph
    shares: Mapping[TableName, tuple[Share, ...]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Described:
    """A text description of stages: `fragments` by stage name, `reads` by table name.

    `reads` says how much of a divided table is read.
    """

    tables: frozenset[TableName]
    graph: StageGraph
    fragments: Mapping[str, str]
    reads: Mapping[TableName, str]


@dataclass(frozen=True, slots=True)
class Explained:
    """An EXPLAIN; `way` is how the explained statement runs.

    `is_run` is true for EXPLAIN ANALYZE, and `is_verbose` for EXPLAIN ANALYZE VERBOSE of stages.
    Stages that do not run are described.
    """

    way: NoneReady | Whole | Staged | Described
    is_run: bool
    is_verbose: bool = False


Decision = Here | NoneReady | LookedUp | Whole | Staged | Explained
