"""Clusters as runners: executors in this process, and real ones behind HTTP."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from caraway_engine.contexts import EngineSettings
from caraway_engine.stages import Policy
from tests.differential.datasets import Dataset
from tests.differential.runners import Distributed, Opening
from tests.kit.clusters import in_process_cluster


def in_process(executors: int, policy: Policy) -> Opening:
    """Executors in this process, of which each reads a share of every table."""

    @asynccontextmanager
    async def opening(dataset: Dataset) -> AsyncIterator[Distributed]:
        tables = dict(dataset.snapshot().tables)
        with tempfile.TemporaryDirectory() as folder:
            async with in_process_cluster(
                Path(folder),
                {str(name): spec for name, spec in tables.items()},
                executors=executors,
                policy=policy,
                settings=EngineSettings(2),
            ) as cluster:
                yield cluster

    return opening
