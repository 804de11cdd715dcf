"""Reads whole tables in memory in large batches.

The engine cuts what it reads into batches of 8,192 rows, which suit its operators. Where none
follows, the cutting only costs: each batch is exported, converted and sent by itself.
"""

from typing import Any

from caraway_engine.execution.contexts import Contexts
from caraway_engine.execution.frugal import ChainedPartitions


def start(contexts: Contexts, dataframe: Any) -> Any:
    """Start a statement that only names columns of one table in memory.

    The batches are large unless the engine has to work on them. The partitions are read one after
    another, because reading memory takes no time.
    """
    plan = dataframe.execution_plan()
    if plan.children():
        return dataframe.execute_stream()
    return ChainedPartitions(contexts.reading, plan)
