"""Decides how a statement runs on a cluster; holds the questions and decisions, as values.

This module holds the values and the Protocol. It loads no engine, because the process that serves
the API imports it. `router` makes the decisions and loads the engine. Nothing here calls an
executor.
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
