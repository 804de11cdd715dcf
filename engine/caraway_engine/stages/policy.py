"""The numbers behind the choice of an exchange: pure functions of sizes."""

import math
from dataclasses import dataclass

MIB = 2**20
_MEMORY_SHARE = 8
"""A broadcast or a build side takes at most this part of an executor's memory."""
_DECODED = 3.0
"""Rows in memory are about so much larger than the columns of files that they come from."""
_FILTERED = 0.3
"""What a filter is guessed to leave; nothing that matters rests on it alone."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Sizes at which it pays to do otherwise; `docs/performance.md` shows where they come from.

    A table of which no more than `small_table_bytes` of its files are read is read whole by each
    task. A side of a join up to `broadcast_bytes` always goes to every executor. Rows up to
    `gather_bytes` are finished by one task. A hash partition holds about `partition_bytes`.
    """

    small_table_bytes: int = 16 * MIB
    broadcast_bytes: int = 16 * MIB
    gather_bytes: int = 16 * MIB
    partition_bytes: int = 128 * MIB

    def is_small_table(self, read_bytes: float) -> bool:
        return read_bytes <= self.small_table_bytes

    def may_gather(self, size_bytes: float) -> bool:
        return size_bytes <= self.gather_bytes

    def may_broadcast(
        self, size_bytes: float, other_bytes: float, slots: int, memory_bytes: int
    ) -> bool:
        """Whether sending a side to all costs less than parting both, and fits into memory.

        Parting moves all but one slot's part of both sides; a broadcast moves one side to each.
        """
        if size_bytes > memory_bytes / _MEMORY_SHARE:
            return False
        if size_bytes <= self.broadcast_bytes:
            return True
        return bool(self.broadcast_bytes) and size_bytes * slots <= size_bytes + other_bytes

    def may_join_in_place(self, size_bytes: float, slots: int, memory_bytes: int) -> bool:
        """Whether the smaller side of a join fits into memory where its share lies, uncut."""
        return size_bytes / slots <= memory_bytes / _MEMORY_SHARE

    def partitions(self, size_bytes: float, slots: int, memory_bytes: int) -> int:
        """Choose into how many hash partitions rows are parted, so that each fits in memory."""
        limit = min(self.partition_bytes, memory_bytes / _MEMORY_SHARE)
        return slots * max(1, math.ceil(size_bytes / (limit * slots)))


def decoded(file_bytes: float) -> float:
    return file_bytes * _DECODED


def filtered(size_bytes: float) -> float:
    return size_bytes * _FILTERED
