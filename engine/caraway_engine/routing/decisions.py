"""The ways in which a statement can run on a cluster. Values that any process can read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.fleet import Share
from caraway_engine.stages import StageGraph


@dataclass(frozen=True, slots=True)
class Here:
    """The scheduler's own engine runs it: it reads what only the scheduler knows, or no table."""

    tables: frozenset[TableName]


@dataclass(frozen=True, slots=True)
class NoneReady:
    """It needs an executor, and none is ready."""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """It looks rows of `table` up by a key. `owner` has them all; None: any executor has."""

    table: TableName
    owner: ExecutorId | None


@dataclass(frozen=True, slots=True)
class Whole:
    """One executor runs all of it: the owner of the tables in memory, where it reads one.

    `objection` says why it is not cut into stages; None: what it reads is small.
    """

    tables: frozenset[TableName]
    written: TableName | None
    objection: str | None
    is_at_owner: bool = False


@dataclass(frozen=True, slots=True)
class Staged:
    """All executors run it in stages, as many tasks a stage as executors were in the question.

    `graph` goes as far as sizes are known. `shares` says for each divided table what each slot
    reads of it. The planner is held until it is forgotten.
    """

    tables: frozenset[TableName]
    schema: pa.Schema = field(repr=False)
    reads_only_catalog: bool
    graph: StageGraph
    shares: Mapping[TableName, tuple[Share, ...]] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Described:
    """Stages in words: `fragments` by the name of the stage, `reads` by that of a table.

    `reads` says how much of a divided table is read.
    """

    tables: frozenset[TableName]
    graph: StageGraph
    fragments: Mapping[str, str]
    reads: Mapping[TableName, str]


@dataclass(frozen=True, slots=True)
class Explained:
    """It is an EXPLAIN: `way` is how the statement behind it runs.

    `is_run`: it is to be run, as EXPLAIN ANALYZE does. Stages that are not run are described.
    """

    way: NoneReady | Whole | Staged | Described
    is_run: bool


Decision = Here | NoneReady | LookedUp | Whole | Staged | Explained
