"""Works around known faults of DataFusion 55 that give wrong results.

Faults are detected in the syntax tree of the engine's own parser, and by asking the engine for
types. The text of a plan is never inspected. This package does not run statements.
"""

from caraway_engine.known_faults.mending import RewrittenStatement, mend
from caraway_engine.known_faults.planning import PlannedStatement, planned
from caraway_engine.known_faults.relations import DoubtedRelations
from caraway_engine.known_faults.schemas import KnownSchemas

__all__ = [
    "DoubtedRelations",
    "KnownSchemas",
    "PlannedStatement",
    "RewrittenStatement",
    "mend",
    "planned",
]
