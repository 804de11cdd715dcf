"""Keeps the stage graphs of statements that run again, so that they are not planned again."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock

from caraway_core.ids import TableName
from caraway_engine.sessions.distribution import Analysis
from caraway_engine.stages import Cluster, Measured, StageGraph
from caraway_engine.stages.planner import Planner
from caraway_engine.stages.schemas import TypeSchemas

_MOST_STATEMENTS = 256
_MOST_GRAPHS = 64
"""The most graphs of one statement. There are more only if its sizes differ in each run."""
_MOST_BYTES = 256 * 1024
"""A statement with a larger plan is planned each time."""
History = tuple[frozenset[tuple[str, Measured]], ...]
"""The sizes that a planner was given, call by call."""


@dataclass(slots=True, eq=False)
class _Known:
    """The graphs of one statement, as long as it is planned from the same facts."""

    analysis: Analysis
    cluster: Cluster
    graphs: dict[History, StageGraph] = field(default_factory=dict)

    def is_of(self, analysis: Analysis, cluster: Cluster) -> bool:
        """Return whether a planner of these would make the same graphs."""
        return (
            self.analysis is analysis
            and self.cluster.tables is cluster.tables
            and self.cluster.slots == cluster.slots
            and self.cluster.memory_bytes == cluster.memory_bytes
            and self.cluster.policy == cluster.policy
        )


class RepeatedPlanner:
    """Plans the stages of one run of a statement, as `Planner` does.

    Planning is a function of the sizes that it is given. So a run whose stages have the sizes of an
    earlier run takes the graphs of that run. Otherwise the planner is made, and given all sizes
    again.
    """

    def __init__(
        self,
        make: Callable[[], Planner],
        divided: frozenset[TableName],
        graphs: dict[History, StageGraph],
    ) -> None:
        self.divided = divided
        self._make = make
        self._graphs = graphs
        self._given: list[Mapping[str, Measured]] = []
        self._history: History = ()
        self._planner: Planner | None = None

    @property
    def schemas(self) -> TypeSchemas:
        """The schemas of the stages that were planned."""
        return self._caught_up().schemas

    def advance(self, finished: Mapping[str, Measured]) -> StageGraph:
        """See `Planner.advance`."""
        history = (*self._history, frozenset(finished.items()))
        graph = self._graphs.get(history)
        if graph is None:
            graph = self._caught_up().advance(finished)
            if len(self._graphs) >= _MOST_GRAPHS:
                self._graphs.clear()
            self._graphs[history] = graph
        elif self._planner is not None:
            self._planner.advance(finished)
        self._given.append(dict(finished))
        self._history = history
        return graph

    def _caught_up(self) -> Planner:
        if self._planner is None:
            planner = self._make()
            for finished in self._given:
                planner.advance(finished)
            self._planner = planner
        return self._planner


class RepeatedPlanners:
    """Makes the planners of statements, and keeps what those of the same statement planned."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = Lock()

    def planner(
        self,
        key: str | None,
        analysis: Analysis,
        cluster: Cluster,
        make: Callable[[frozenset[TableName]], Planner],
    ) -> RepeatedPlanner:
        """Return a planner; without a key, the statement is one that is not repeated."""
        divided = cluster.divided(analysis.reads) | cluster.spread(analysis.reads)
        known = self._known_of(key, analysis, cluster) if key else _Known(analysis, cluster)
        return RepeatedPlanner(lambda: make(divided), divided, known.graphs)

    def _known_of(self, key: str, analysis: Analysis, cluster: Cluster) -> _Known:
        with self._lock:
            known = self._known.get(key)
            if known is None or not known.is_of(analysis, cluster):
                known = _Known(analysis, cluster)
            assert analysis.plan is not None
            if analysis.plan.ByteSize() <= _MOST_BYTES:
                self._known[key] = known
                self._known.move_to_end(key)
                if len(self._known) > _MOST_STATEMENTS:
                    self._known.popitem(last=False)
            return known
