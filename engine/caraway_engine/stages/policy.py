"""The numbers behind the choice of an exchange: pure functions of sizes."""

import math

SMALL_TABLE_BYTES = 16 * 2**20
"""A table, by the bytes of its files that are read, that each task reads whole."""
BROADCAST_BYTES = 16 * 2**20
"""A side of a join that is always sent to every executor instead of parting both sides."""
GATHER_BYTES = 16 * 2**20
"""Rows that one executor finishes alone faster than several can share them."""
_MEMORY_SHARE = 8
"""A broadcast or a build side takes at most this part of an executor's memory."""
_PARTITION_BYTES = 128 * 2**20

_DECODED = 3.0
"""Rows in memory are about so much larger than the columns of files that they come from."""
_FILTERED = 0.3
"""What a filter is guessed to leave; nothing that matters rests on it alone."""


def is_small_table(read_bytes: float) -> bool:
    return read_bytes <= SMALL_TABLE_BYTES


def decoded(file_bytes: float) -> float:
    return file_bytes * _DECODED


def filtered(size_bytes: float) -> float:
    return size_bytes * _FILTERED


def may_broadcast(size_bytes: float, other_bytes: float, slots: int, memory_bytes: int) -> bool:
    """Whether sending a side to all costs less than parting both, and fits into memory.

    Parting moves all but one slot's part of both sides; a broadcast moves one side to each slot.
    """
    if size_bytes > memory_bytes / _MEMORY_SHARE:
        return False
    return size_bytes <= BROADCAST_BYTES or size_bytes * slots <= size_bytes + other_bytes


def may_gather(size_bytes: float) -> bool:
    return size_bytes <= GATHER_BYTES


def partitions(size_bytes: float, slots: int, memory_bytes: int) -> int:
    """Choose how many hash partitions rows are parted into, of which each must fit in memory."""
    limit = min(_PARTITION_BYTES, memory_bytes / _MEMORY_SHARE)
    return slots * max(1, math.ceil(size_bytes / (limit * slots)))
