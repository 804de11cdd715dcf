"""Ids are types of their own, so that one kind is never handed over for another."""

import secrets
import time
import uuid
from typing import NewType

QueryId = NewType("QueryId", str)
ExecutorId = NewType("ExecutorId", str)
NodeId = NewType("NodeId", str)
PrincipalId = NewType("PrincipalId", str)
JobId = NewType("JobId", str)
TableName = NewType("TableName", str)
CatalogVersion = NewType("CatalogVersion", int)

PUBLIC = PrincipalId("public")
"""The owner of everything that was asked for without credentials."""


def new_query_id() -> QueryId:
    """Return a fresh query id: a UUID in text form, as clients of the cancel route send it."""
    return QueryId(str(uuid.uuid4()))


def new_job_id() -> JobId:
    """Return a fresh job id, as clients know them; ids sort by the time at which they were made."""
    stamp = time.time_ns() // 1_000_000
    digits = f"{stamp:012X}7{secrets.token_hex(10)[:19].upper()}"
    return JobId("-".join((digits[:5], digits[5:8], digits[8:11], digits[11:])))
