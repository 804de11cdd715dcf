"""Ids are types of their own, so that one kind is never handed over for another."""

import uuid
from typing import NewType

QueryId = NewType("QueryId", str)
ExecutorId = NewType("ExecutorId", str)
NodeId = NewType("NodeId", str)
PrincipalId = NewType("PrincipalId", str)
TableName = NewType("TableName", str)
CatalogVersion = NewType("CatalogVersion", int)

PUBLIC = PrincipalId("public")
"""The owner of everything that was asked for without credentials."""


def new_query_id() -> QueryId:
    """Return a fresh query id: a UUID in text form, as clients of the cancel route send it."""
    return QueryId(str(uuid.uuid4()))
