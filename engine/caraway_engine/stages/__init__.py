"""Plans distributed queries: turns a Substrait plan into stages and exchanges. Values, no I/O.

This package neither runs stages nor knows where executors are. This module holds only values, so
importing it to read a graph does not load Substrait.
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
    TableReads,
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
    "TableReads",
]
