"""Cluster runners: in-process executors, and real executors behind HTTP."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import httpx
import yaml

from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from tests.differential.datasets import Dataset
from tests.differential.http_runner import OverHttp
from tests.differential.runners import Distributed, Opening, by_chance, single_node
from tests.kit.clusters import InProcessCluster, in_process_cluster
from tests.kit.deadlines import until
from tests.kit.ray_cluster import ray_cluster
from tests.kit.stored import stored

WHOLE = "two-by-hash"
"""The runner over which `make test-answers` runs everything; of the others it runs a share."""


def in_process(executors: int, policy: Policy) -> Opening:
    """Return in-process executors that each read a share of every table."""

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


def shuffling(executors: int, policy: Policy) -> Opening:
    """Return in-process executors whose scheduler joins in an order that chance chooses."""
    plain = in_process(executors, policy)

    @asynccontextmanager
    async def opening(dataset: Dataset) -> AsyncIterator[Distributed]:
        async with plain(dataset) as cluster:
            assert isinstance(cluster, InProcessCluster)
            session = cluster.engine._local.session
            assert session is not None
            session._statements.reruns.policy = by_chance(Random(0))
            yield cluster

    return opening


def accelerated(executors: int, policy: Policy, every: int = 1) -> Opening:
    """Return in-process executors over accelerated datasets, for every n-th table."""

    @asynccontextmanager
    async def opening(dataset: Dataset) -> AsyncIterator[Distributed]:
        with tempfile.TemporaryDirectory() as folder:
            tables: dict[str, TableSpec] = {
                str(name): spec for name, spec in dataset.snapshot().tables.items()
            }
            for name in dataset.tables[::every]:
                async with single_node(dataset) as node:
                    rows = await node.execute(f'SELECT * FROM "{name}"')
                tables[name] = await stored(Path(folder) / "chunks", rows, 5, name)
            async with in_process_cluster(
                Path(folder), tables, executors=executors, policy=policy, settings=EngineSettings(2)
            ) as cluster:
                yield cluster

    return opening


def real(executors: int) -> Opening:
    """Return Ray executors behind the HTTP API of a scheduler, started by the real commands."""

    @asynccontextmanager
    async def opening(dataset: Dataset) -> AsyncIterator[Distributed]:
        with tempfile.TemporaryDirectory() as name:
            manifest = _eager(dataset, Path(name))
            with ray_cluster(Path(name), executors) as cluster:
                scheduler = cluster.begin_scheduler("s1", manifest).wait_up()
                url = f"http://{scheduler.facts['http']}"
                until(lambda: _is_ready(url, executors), "every executor is ready", 300)
                async with httpx.AsyncClient(base_url=url, timeout=120) as client:
                    yield OverHttp(client)

    return opening


def _eager(dataset: Dataset, folder: Path) -> Path:
    """Write a manifest of the dataset under which tables of any size are divided."""
    content = yaml.safe_load(dataset.manifest().read_text())
    sizes = {"small_table_size": "0", "broadcast_size": "16KiB", "gather_size": "4KiB"}
    content["runtime"] = {"query": {"distribution": sizes}}
    path = folder / "caraway.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def _is_ready(url: str, executors: int) -> bool:
    answer = httpx.get(f"{url}/v1/ready", params={"min_ready_executors": executors}, timeout=60)
    return answer.status_code == httpx.codes.OK
