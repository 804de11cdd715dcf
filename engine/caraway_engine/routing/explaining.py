"""Explains a statement that runs in stages: estimates its stages and describes them."""

from caraway_core.tables import TableSpec
from caraway_engine.routing.decisions import Described
from caraway_engine.routing.held import StagedStatement
from caraway_engine.routing.repeated import RepeatedPlanner
from caraway_engine.sharing import dealing, pruning
from caraway_engine.sharing.pruning import Facts
from caraway_engine.stages import Measured, StageGraph


def foreseen(planner: RepeatedPlanner) -> StageGraph:
    """Plan all stages, using the estimates as the measured sizes."""
    sizes: dict[str, Measured] = {}
    graph = planner.advance(sizes)
    while graph.root is None:
        for name, stage in graph.stages.items():
            sizes.setdefault(name, Measured(0, stage.estimate_bytes))
        graph = planner.advance(sizes)
    return graph


def described(under_way: StagedStatement, graph: StageGraph) -> Described:
    """Describe each stage, and how much of each divided table is read."""
    stages = [*graph.stages.values(), *([graph.root] if graph.root else [])]
    specs, filters = under_way.specs, under_way.analysis.filters
    tables = frozenset(table for stage in stages for table in stage.tables)
    return Described(
        under_way.analysis.tables,
        graph,
        {stage.name: under_way.planner.schemas.text(stage.plan) for stage in stages},
        {table: _partitions(specs.get(table), filters.get(table)) for table in tables},
    )


def _partitions(spec: TableSpec | None, reads: tuple[Facts, ...] | None) -> str:
    """Describe how many partitions of a table are read, or return "" if it has none."""
    if not pruning.is_cut(spec):
        return ""
    names = [each.name for each in dealing.pieces(spec)]
    wanted = pruning.kept(spec, reads, names) if reads is not None else names
    return f": {len(wanted)} of {len(names)} partitions"
