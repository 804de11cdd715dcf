"""EXPLAIN of a statement that runs in stages: what is foreseen, and its words."""

from caraway_core.tables import TableSpec
from caraway_engine.routing.decisions import Described
from caraway_engine.routing.held import StagedStatement
from caraway_engine.sharing import dealing, pruning
from caraway_engine.sharing.pruning import Facts
from caraway_engine.stages import Measured, StageGraph
from caraway_engine.stages.planner import Planner


def foreseen(planner: Planner) -> StageGraph:
    """Plan to the end as if every size were what it was estimated to be."""
    sizes: dict[str, Measured] = {}
    graph = planner.advance(sizes)
    while graph.root is None:
        for name, stage in graph.stages.items():
            sizes.setdefault(name, Measured(0, stage.estimate_bytes))
        graph = planner.advance(sizes)
    return graph


def described(under_way: StagedStatement, graph: StageGraph) -> Described:
    """Word each stage, and how much is read of each table that is divided."""
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
    """Word how many partitions of a table are read, if it has some."""
    if not pruning.is_cut(spec):
        return ""
    names = [each.path for each in dealing.pieces(spec)]
    wanted = pruning.kept(spec, reads, names) if reads is not None else names
    return f": {len(wanted)} of {len(names)} partitions"
