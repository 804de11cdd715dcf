"""How a statement runs on a cluster: the questions of a scheduler, and the answers, as values.

This module holds the values and the Protocol, and loads no engine: the process that serves the API
imports it. What answers is in `router`, which does. Nothing here calls an executor.
"""

from caraway_engine.routing.decisions import (
    Decision,
    Described,
    Explained,
    Here,
    LookedUp,
    NoneReady,
    Staged,
    Whole,
)
from caraway_engine.routing.protocol import PlanId, Planning, Prepared, Question, Workers

__all__ = [
    "Decision",
    "Described",
    "Explained",
    "Here",
    "LookedUp",
    "NoneReady",
    "PlanId",
    "Planning",
    "Prepared",
    "Question",
    "Staged",
    "Whole",
    "Workers",
]
