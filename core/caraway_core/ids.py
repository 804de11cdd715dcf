"""Distinct types for ids, so that one kind of id cannot be passed for another."""

import os
import re
import secrets
import time
import uuid
from collections import deque
from typing import NewType

QueryId = NewType("QueryId", str)
ExecutorId = NewType("ExecutorId", str)
NodeId = NewType("NodeId", str)
PrincipalId = NewType("PrincipalId", str)
JobId = NewType("JobId", str)
TableName = NewType("TableName", str)
CatalogVersion = NewType("CatalogVersion", int)

PUBLIC = PrincipalId("public")
"""The principal that owns everything requested without credentials."""


_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_BLOCKS = 256
_BLOCK_BYTES = 16
_random: deque[str] = deque()
os.register_at_fork(after_in_child=_random.clear)


def random_hex(size_bytes: int = _BLOCK_BYTES) -> str:
    """Return up to 16 random bytes as hexadecimal digits.

    They come from the system, 4 KiB at a time, because a statement needs four ids and each call of
    the system takes longer than the rest of making one.
    """
    try:
        block = _random.pop()
    except IndexError:
        drawn = secrets.token_hex(_BLOCKS * _BLOCK_BYTES)
        width = 2 * _BLOCK_BYTES
        blocks = [drawn[start : start + width] for start in range(0, len(drawn), width)]
        block = blocks.pop()
        _random.extend(blocks)
    return block[: 2 * size_bytes]


def new_query_id() -> QueryId:
    """Return a new query id: a random UUID as text, the form that the cancel route expects."""
    digits = random_hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return QueryId(
        f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
    )


def new_job_id() -> JobId:
    """Return a new job id; ids sort by creation time."""
    stamp = time.time_ns() // 1_000_000
    digits = f"{stamp:012X}7{secrets.token_hex(10)[:19].upper()}"
    return JobId("-".join((digits[:5], digits[5:8], digits[8:11], digits[11:])))


def key_prefix(name: TableName) -> str:
    """Return the prefix of all keys of a dataset in a store, which no other dataset has."""
    # Names may contain any character. The digest distinguishes names that are equal after
    # replacing.
    digest = uuid.uuid5(uuid.NAMESPACE_OID, name).hex[:8]
    return f"d-{_UNSAFE.sub('_', name)[:60]}-{digest}."
