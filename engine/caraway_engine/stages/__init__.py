"""Planning of distributed queries: Substrait in, stages and exchanges out; values, no I/O.

What runs the stages does not live here, nor does anything that knows where executors are. This
module itself holds values only: who imports it to read a graph does not load the plan language.
"""

from caraway_engine.stages.graph import (
    Buckets,
    Cluster,
    ExchangeRead,
    Hashed,
    Measured,
    ReadMode,
    Stage,
    StageGraph,
    TableFacts,
)
from caraway_engine.stages.policy import Policy

__all__ = [
    "Buckets",
    "Cluster",
    "ExchangeRead",
    "Hashed",
    "Measured",
    "Policy",
    "ReadMode",
    "Stage",
    "StageGraph",
    "TableFacts",
]
