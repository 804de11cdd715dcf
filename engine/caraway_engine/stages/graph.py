"""The stage graph of a query: stages connected by exchanges. Values only."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.work import SubstraitFragment, Work
from caraway_engine.stages.policy import Policy


class ReadMode(StrEnum):
    """The way in which a stage reads the tables of another stage."""

    ALL = "all"
    """Every task reads every table: a gather if there is one task, otherwise a broadcast."""
    OWN = "own"
    """The task of slot i reads the table that slot i made; no rows move."""
    PARTITION = "partition"
    """The task of partition i reads partition i of every table: a hash exchange."""
    TOP_K = "top_k"
    """One task reads every table, and merges the best rows that each task left: see `TopRows`."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column by which rows are ordered."""

    column: int
    is_descending: bool = False
    has_nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class TopRows:
    """The best rows of each task: no task leaves more than `count`, which is offset and limit.

    Without keys any rows will do.
    """

    keys: tuple[SortKey, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ExchangeRead:
    """One exchange that a fragment reads, under `name` in its plan; `top` is that of TOP_K."""

    stage: str
    mode: ReadMode
    name: str
    schema: pa.Schema = field(repr=False)
    top: TopRows | None = None


Layout = Literal["single", "slots", "partitions"]


@dataclass(frozen=True, slots=True)
class Hashed:
    """Hash partitioning of a stage's output by `keys`; the last `extra` columns are dropped."""

    keys: tuple[int, ...]
    count: int
    extra: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """A fragment, the number of tasks that run it, and how their rows are exchanged.

    The layout `single` means one task. `slots` means one task per slot, each with its share of
    `tables`. `partitions` means one task for each of `count` hash partitions. `note` describes the
    rows, and `estimate_bytes` is their estimated size. `colocated` are the table groups that it
    joins without moving rows.
    `works` is what its tasks do in place of the fragment, one for each, or one for all.
    """

    name: str
    plan: bytes = field(repr=False)
    schema: pa.Schema = field(repr=False)
    layout: Layout
    count: int
    readings: tuple[ExchangeRead, ...] = ()
    tables: frozenset[TableName] = frozenset()
    hashed: Hashed | None = None
    note: str = ""
    estimate_bytes: int = 0
    colocated: tuple[str, ...] = ()
    works: tuple[Work, ...] = ()

    def partitions(self, least: int) -> int:
        """Return the number of partitions of its output if they are enough, or else the least."""
        return self.hashed.count if self.hashed and self.hashed.count >= least else least

    def work(self, number: int) -> Work:
        """Return the work of a task."""
        if not self.works:
            return SubstraitFragment(self.plan)
        return self.works[number % len(self.works)]


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured size of a finished stage."""

    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StageGraph:
    """Stages by name, each after the stages that it reads.

    Without a `root`, the graph ends at stages whose sizes must be measured before planning
    continues.
    """

    stages: Mapping[str, Stage]
    root: Stage | None


@dataclass(frozen=True, slots=True)
class Buckets:
    """Tables of one `group` have equal values of `column` in the share of one slot."""

    group: str
    column: int


TableReads = Mapping[TableName, Collection[frozenset[str]]]
"""The columns of each read of each table."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the planner knows of a table: its size, and whether tasks can read shares of it.

    Executors keep a table that `is_kept` in memory, with all of its columns.
    """

    size_bytes: int
    columns: int
    is_divisible: bool
    is_kept: bool = False
    buckets: Buckets | None = None
    column_bytes: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None

    def even_bytes(self, width: int) -> float:
        """Return the size of this many columns, as if all were equal.

        Rows in memory are estimated from this: a column that is small in a file, because its values
        repeat, is as large as others once it is decoded.
        """
        return self.size_bytes * width / max(1, self.columns)

    def read_bytes(self, columns: Collection[str]) -> float:
        """Return the number of bytes that are read for these columns."""
        if self.is_kept:
            return self.size_bytes
        if self.column_bytes:
            return sum(self.column_bytes.get(column, 0) for column in columns)
        return self.even_bytes(len(columns))


@dataclass(frozen=True, slots=True)
class Cluster:
    """The resources of a query: the slots, one per executor, and the memory of each."""

    slots: int
    memory_bytes: int = 8 * 2**30
    tables: Mapping[TableName, TableFacts] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)

    def may_broadcast(self, size_bytes: float, other_bytes: float) -> bool:
        """Return whether a join side should be broadcast; see `Policy.may_broadcast`."""
        return self.policy.may_broadcast(size_bytes, other_bytes, self.slots, self.memory_bytes)

    def may_join_in_place(self, size_bytes: float) -> bool:
        """Return whether a join can run without moving rows; see `Policy.may_join_in_place`."""
        return self.policy.may_join_in_place(size_bytes, self.slots, self.memory_bytes)

    def partitions(self, size_bytes: float) -> int:
        """Return the number of hash partitions for rows of this size."""
        return self.policy.partitions(size_bytes, self.slots, self.memory_bytes)

    def divided(self, reads: TableReads) -> frozenset[TableName]:
        """Return the tables that tasks read in shares: those of which one read is large."""
        return frozenset(
            table
            for table, found in self._divisible(reads)
            if not all(map(self.policy.is_small_table, found))
        )

    def spread(self, reads: TableReads) -> frozenset[TableName]:
        """Return the small tables that a stage reads in shares if it reads nothing else.

        Only tables of files whose columns were measured, so that no database is asked twice.
        """
        return frozenset(
            table
            for table, found in self._divisible(reads)
            if self.tables[table].column_bytes
            and all(map(self.policy.is_small_table, found))
            and any(map(self.policy.may_spread, found))
        )

    def _divisible(self, reads: TableReads) -> Iterator[tuple[TableName, list[float]]]:
        """Yield the tables that can be divided, and the bytes of each read."""
        for table, found in reads.items():
            facts = self.tables.get(table)
            if facts is not None and facts.is_divisible:
                yield table, [facts.read_bytes(each) for each in found]
