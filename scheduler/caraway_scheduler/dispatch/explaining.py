"""EXPLAIN and EXPLAIN ANALYZE of a distributed query, in words."""

import re
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from caraway_core.ids import ExecutorId
from caraway_engine.stages import Measured, Mode, Planner, Stage, StageGraph
from caraway_scheduler.dispatch.running import Ran

_EXPLAIN = re.compile(
    r"\A\s*(?:(?:--[^\n]*\n|/\*.*?\*/)\s*)*EXPLAIN\s+(?P<analyze>ANALYZE\s+)?"
    r"(?:VERBOSE\s+)?(?:FORMAT\s+\S+\s+)?(?P<statement>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_MODES = {
    Mode.ALL: "all of it",
    Mode.OWN: "its own part",
    Mode.PARTITION: "its hash partition",
}
SCHEMA = pa.schema([("plan_type", pa.string()), ("plan", pa.string())])


def parse(sql: str) -> tuple[str, bool] | None:
    """Return the statement behind EXPLAIN, and whether it is to be run; None for any other."""
    found = _EXPLAIN.match(sql)
    return (found["statement"], bool(found["analyze"])) if found else None


def foreseen(planner: Planner) -> tuple[StageGraph, dict[str, Measured]]:
    """Plan to the end as if every size were what it was estimated to be."""
    sizes: dict[str, Measured] = {}
    graph = planner.advance(sizes)
    while graph.root is None:
        for name, stage in graph.stages.items():
            sizes.setdefault(name, Measured(0, stage.estimate_bytes))
        graph = planner.advance(sizes)
    return graph, sizes


def whole(objection: str | None) -> str:
    """Say why a statement is not distributed."""
    reason = objection or "what it reads is small"
    return f"runs whole on one executor: {reason}"


def describe(
    graph: StageGraph,
    fragment: Callable[[bytes], str],
    executor: Callable[[int], ExecutorId],
    ran: Sequence[Ran] = (),
) -> str:
    """List the stages, last first, each with where it runs and what it does."""
    assert graph.root is not None
    lines: list[str] = []
    if not ran:
        lines.append("exchanges chosen from estimates; when it runs, from measured sizes")
    by_stage: dict[str, list[Ran]] = {}
    for each in ran:
        by_stage.setdefault(each.stage, []).append(each)
    for stage in (graph.root, *reversed(list(graph.stages.values()))):
        lines.append(_headline(stage, executor))
        lines += [f"  reads {each.stage}: {_MODES[each.mode]}" for each in stage.readings]
        lines += [f"  reads its share of {table}" for table in sorted(stage.tables)]
        if stage.hashed:
            keys = ", ".join(f"c{key}" for key in stage.hashed.keys)
            lines.append(f"  parts its rows by the hash of {keys} into {stage.hashed.count}")
        lines += [_actual(each) for each in by_stage.get(stage.name, ())]
        lines += [f"    {line}" for line in fragment(stage.plan).splitlines()]
    return "\n".join(lines)


def _headline(stage: Stage, executor: Callable[[int], ExecutorId]) -> str:
    where = sorted({executor(number) for number in range(stage.count)})
    tasks = "1 task" if stage.count == 1 else f"{stage.count} tasks"
    on = "" if stage.layout == "single" and stage.readings else f" on {', '.join(where)}"
    return f"{stage.name}: {stage.note}: {tasks}{on}"


def _actual(ran: Ran) -> str:
    return (
        f"  task {ran.number} on {ran.executor_id}: {ran.rows} rows, {ran.size_bytes} bytes, "
        f"{ran.elapsed_ms:.1f} ms"
    )


def rows(pairs: Mapping[str, str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"plan_type": list(pairs), "plan": list(pairs.values())}, schema=SCHEMA
    )
