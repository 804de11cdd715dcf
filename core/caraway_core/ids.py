"""Distinct types for ids, so that one kind of id cannot be passed for another."""

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
"""The principal that owns everything requested without credentials."""


def new_query_id() -> QueryId:
    """Return a new query id: a UUID as text, the form that the cancel route expects."""
    return QueryId(str(uuid.uuid4()))


def new_job_id() -> JobId:
    """Return a new job id; ids sort by creation time."""
    stamp = time.time_ns() // 1_000_000
    digits = f"{stamp:012X}7{secrets.token_hex(10)[:19].upper()}"
    return JobId("-".join((digits[:5], digits[5:8], digits[8:11], digits[11:])))
