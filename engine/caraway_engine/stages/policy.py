"""Size thresholds for choosing an exchange: pure functions of sizes."""

import math
from dataclasses import dataclass

MIB = 2**20
_MEMORY_SHARE = 8
"""A broadcast or a build side takes at most this fraction (1/8) of an executor's memory."""
_LARGE = 4
"""Rows that seem this many times too large for a broadcast are partitioned at once."""
_DECODED = 3.0
"""The approximate ratio of rows in memory to the file columns that they come from."""
_FILTERED = 0.3
"""The assumed selectivity of a filter. No important decision depends on it alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Size thresholds for planning; `docs/performance.md` explains the values.

    Each task reads a table in full if it needs at most `small_table_bytes` of its files. A stage
    that only filters such a table divides it if it needs at least `spread_bytes` of them, and fewer
    bytes of rows that were reduced are joined by one task. A join side up to `broadcast_bytes` is
    always broadcast. Rows up to `gather_bytes` are finished by one task. A hash partition holds
    about `partition_bytes`. The right side of a LEFT join is grouped before the join if it has a
    table with `grouped_first` times the rows of the left side.
    """

    small_table_bytes: int = 16 * MIB
    spread_bytes: int = 4 * MIB
    broadcast_bytes: int = 16 * MIB
    gather_bytes: int = 16 * MIB
    partition_bytes: int = 128 * MIB
    grouped_first: float = 2.0

    def is_small_table(self, read_bytes: float) -> bool:
        """Return whether each task should read a table in full."""
        return read_bytes <= self.small_table_bytes

    def may_spread(self, read_bytes: float) -> bool:
        """Return whether tasks should divide a small table, or few rows that are joined."""
        return read_bytes >= self.spread_bytes

    def seems_large(self, estimate_bytes: float) -> bool:
        """Return whether to partition rows when they are first written, before they are measured.

        Estimates are often too high, and to partition rows that are then broadcast costs some ms.
        """
        return estimate_bytes > _LARGE * self.broadcast_bytes

    def may_group_first(self, of_left: int | None, of_right: int | None) -> bool:
        """Return whether several rows of the right side seem to match each row of the left one."""
        if of_left is None or of_right is None:
            return False
        return of_right >= self.grouped_first * of_left

    def may_gather(self, size_bytes: float) -> bool:
        """Return whether one task should finish rows of this size."""
        return size_bytes <= self.gather_bytes

    def may_broadcast(
        self, size_bytes: float, other_bytes: float, slots: int, memory_bytes: int
    ) -> bool:
        """Return whether broadcasting a side is cheaper than partitioning both, and fits in memory.

        Partitioning moves all but one slot's part of both sides. A broadcast moves one side to each
        slot.
        """
        if size_bytes > memory_bytes / _MEMORY_SHARE:
            return False
        if size_bytes <= self.broadcast_bytes:
            return True
        return bool(self.broadcast_bytes) and size_bytes * slots <= size_bytes + other_bytes

    def may_join_in_place(self, size_bytes: float, slots: int, memory_bytes: int) -> bool:
        """Return whether the smaller side of a join fits in memory without repartitioning."""
        return size_bytes / slots <= memory_bytes / _MEMORY_SHARE

    def partitions(self, size_bytes: float, slots: int, memory_bytes: int) -> int:
        """Return a number of hash partitions with which each partition fits in memory."""
        limit = min(self.partition_bytes, memory_bytes / _MEMORY_SHARE)
        return slots * max(1, math.ceil(size_bytes / (limit * slots)))


def decoded(file_bytes: float) -> float:
    """Estimate the size in memory of rows from files of this size."""
    return file_bytes * _DECODED


def filtered(size_bytes: float) -> float:
    """Estimate the size of rows after a filter."""
    return size_bytes * _FILTERED
