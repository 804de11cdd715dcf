"""Faults of DataFusion 55 that users would meet, and how each is kept from them.

What finds a fault looks at the tree that the engine's own parser makes of a statement, and asks the
engine for types. It never looks at the text of a plan. What runs statements does not live here.
"""

from caraway_engine.known_faults.mending import (
    PlannedStatement,
    Relations,
    RewrittenStatement,
    is_null_safe,
    mend,
    planned,
)
from caraway_engine.known_faults.schemas import KnownSchemas

__all__ = [
    "KnownSchemas",
    "PlannedStatement",
    "Relations",
    "RewrittenStatement",
    "is_null_safe",
    "mend",
    "planned",
]
