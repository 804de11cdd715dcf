"""What a query becomes: stages joined by exchanges. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.work import SubstraitFragment, Work
from caraway_engine.stages.policy import Policy


class ReadMode(StrEnum):
    """How a stage reads the tables that another stage made."""

    ALL = "all"
    """Every task reads every table: a gather if there is one task, else a broadcast."""
    OWN = "own"
    """The task of slot i reads the table that slot i made; nothing moves."""
    PARTITION = "partition"
    """The task of partition i reads partition i of every table: the hash exchange."""
    TOP_K = "top_k"
    """One task reads every table, and merges the best rows that each task left: see `TopRows`."""
    ONCE = "once"
    """The task of the first slot reads everything, all others read nothing."""


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
    """The rows that come out are parted by the hash of `keys`; `extra` columns are dropped."""

    keys: tuple[int, ...]
    count: int
    extra: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """A fragment, how many tasks run it, and what becomes of their rows.

    `single`: one task. `slots`: one for each slot, which reads its share of `tables`.
    `partitions`: one for each of `count` hash partitions. `note` says what its rows are for, and
    `estimate_bytes` how many there were thought to be. `colocated` names the groups of tables
    whose shares it joins as they lie.
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

    def work(self, number: int) -> Work:
        """Return the work of a task."""
        if not self.works:
            return SubstraitFragment(self.plan)
        return self.works[number % len(self.works)]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a finished stage turned out to hold."""

    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class StageGraph:
    """Stages by name, in an order in which each comes after those that it reads.

    Without a `root` the graph ends where sizes must be known before one can go on.
    """

    stages: Mapping[str, Stage]
    root: Stage | None


@dataclass(frozen=True, slots=True)
class Buckets:
    """Tables of one group have the rows of equal keys, in `column`, in the share of one slot."""

    group: str
    column: int


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the planner knows of a table: its size, and whether tasks can read shares of it.

    Executors keep one that `is_kept` in memory, with all of its columns.
    """

    size_bytes: int
    columns: int
    is_divisible: bool
    is_kept: bool = False
    buckets: Buckets | None = None

    def read_bytes(self, width: int) -> float:
        """Say how much is read when a statement asks for so many columns."""
        return self.size_bytes if self.is_kept else self.size_bytes * width / max(1, self.columns)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a query may run: as many slots as executors, each with so much memory."""

    slots: int
    memory_bytes: int = 8 * 2**30
    tables: Mapping[TableName, TableFacts] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)

    def may_broadcast(self, size_bytes: float, other_bytes: float) -> bool:
        return self.policy.may_broadcast(size_bytes, other_bytes, self.slots, self.memory_bytes)

    def may_join_in_place(self, size_bytes: float) -> bool:
        return self.policy.may_join_in_place(size_bytes, self.slots, self.memory_bytes)

    def partitions(self, size_bytes: float) -> int:
        return self.policy.partitions(size_bytes, self.slots, self.memory_bytes)

    def divided(self, widest_reads: Mapping[TableName, int]) -> frozenset[TableName]:
        """Choose the tables of which each task reads a share: the large ones, in all reads."""
        return frozenset(
            table
            for table, width in widest_reads.items()
            if (facts := self.tables.get(table)) is not None
            and facts.is_divisible
            and not self.policy.is_small_table(facts.read_bytes(width))
        )
