"""Drives of queries over stages that the test makes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from caraway_engine.stages import ExchangeRead, Measured, ReadMode, Stage, StageGraph
from caraway_scheduler.dispatch.stages.driving import Drive

SCHEMA = pa.schema({"n": pa.int64()})


def stage(name: str, *reads: str, count: int = 1) -> Stage:
    readings = tuple(ExchangeRead(each, ReadMode.ALL, each, SCHEMA) for each in reads)
    return Stage(name, b"", SCHEMA, "slots", count, readings)


class Runner:
    """Makes stages when the test opens their gates."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.fails: dict[str, Exception] = {}
        self.tasks_done = 0

    def open(self, *names: str) -> None:
        for name in names:
            self.gates.setdefault(name, asyncio.Event()).set()

    async def run_stage(self, made: Stage) -> Measured:
        self.begun.append(made.name)
        await self.gates.setdefault(made.name, asyncio.Event()).wait()
        if made.name in self.fails:
            raise self.fails[made.name]
        self.tasks_done += made.count
        return Measured(len(made.name), 10)


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def driving(
    runner: Runner, *graphs: StageGraph, seen: list[Mapping[str, Measured]] | None = None
) -> Drive:
    left = list(graphs[1:])
    measured: list[Mapping[str, Measured]] = [] if seen is None else seen

    async def advance(sizes: Mapping[str, Measured]) -> StageGraph:
        measured.append(sizes)
        return left.pop(0) if len(left) > 1 else left[0]

    any_runner: Any = runner
    return Drive(advance, graphs[0], any_runner)


def graph(root: Stage | None, *stages: Stage) -> StageGraph:
    return StageGraph({each.name: each for each in stages}, root)
