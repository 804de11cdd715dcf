"""Holds the parts of one scheduler process, which `composition` builds once at start."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from caraway_core.ids import ExecutorId
from caraway_core.manifest import Manifest
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.protocols.engines import EngineReport
from caraway_core.quotas import Quota
from caraway_core.signatures import SignatureGate
from caraway_scheduler import readiness
from caraway_scheduler.acceleration.service import Accelerations
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.catalog.states import ViewState
from caraway_scheduler.dispatch.functions import ManifestFunctions
from caraway_scheduler.dispatch.tallies import DispatchTallies
from caraway_scheduler.embeddings.service import Embeddings
from caraway_scheduler.history.tasks import TaskHistory
from caraway_scheduler.jobs.opening import Jobs
from caraway_scheduler.mcp.endpoint import McpEndpoint
from caraway_scheduler.membership import Membership
from caraway_scheduler.models.service import Models
from caraway_scheduler.nsql import NsqlService
from caraway_scheduler.queries.service import QueryService
from caraway_scheduler.search.rerankers import RerankerModels
from caraway_scheduler.search.service import SearchService
from caraway_scheduler.tools import ToolService
from caraway_scheduler.workers.service import WorkerService
from caraway_serving.access import Keyring
from caraway_serving.limits import InForce
from caraway_serving.tallies import ApiTallies

ConnectionStatus = Literal["Ready", "Initializing", "Disabled", "Error"]


@dataclass(slots=True)
class Connection:
    """One listener of this process, as `/v1/status` tells it."""

    name: Literal["http", "flight", "metrics", "opentelemetry"]
    endpoint: str = "N/A"
    status: ConnectionStatus = "Disabled"


@dataclass(frozen=True, slots=True)
class Operating:
    """What operators of a cluster may do, and the token by which they are known."""

    membership: Membership
    token: str = field(repr=False)
    take: Callable[[ExecutorId, str], Awaitable[BatchStream]] | None = None
    """Reads the rows that an executor offers, in the columns of their statement."""
    gate: SignatureGate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", SignatureGate(self.token))


@dataclass(slots=True)
class ManifestInForce:
    """The manifest that is served now; a reload replaces it."""

    current: Manifest


@dataclass(slots=True)
class Life:
    """How far this process is between its start and its end."""

    is_leaving: bool = False
    """It serves on for a while, so that clients can move to other schedulers."""


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that the API, Flight and the metrics use; every route gets them.

    What changes while a process runs changes inside the parts, so that all who hold them see it.
    """

    manifest: ManifestInForce
    catalog: Catalog
    queries: QueryService
    jobs: Jobs
    accelerations: Accelerations
    dispatch: Dispatch
    """Reaches the sources of accelerated datasets, too."""
    history: TaskHistory
    tallies: ApiTallies
    models: Models
    search: SearchService
    rerankers: RerankerModels
    tools: ToolService
    mcp: McpEndpoint
    embeddings: Embeddings
    nsql: NsqlService
    workers: WorkerService
    keyring: Keyring | None = None
    """None where requests need no key."""
    is_scheduler: bool = False
    max_body_bytes: int = 128 * 1024 * 1024
    max_message_bytes: int = 16 * 1024 * 1024
    """Of one message of rows over Flight."""
    body_memory_bytes: int = 256 * 1024 * 1024
    functions: ManifestFunctions = field(default_factory=ManifestFunctions)
    connections: Sequence[Connection] = field(default_factory=tuple)
    dispatch_tallies: DispatchTallies = field(default_factory=DispatchTallies)
    engines: Callable[[], EngineReport] = EngineReport
    """Reports on the engine processes."""
    scheduler_count: Callable[[], int] = lambda: 1
    limits: InForce = field(default_factory=InForce)
    quotas: dict[str, Quota[Any]] = field(default_factory=dict)
    """The quotas of tables that all callers share, by table."""
    operating: Operating | None = None
    """None where there is no cluster."""
    life: Life = field(default_factory=Life)

    @property
    def is_stopping(self) -> bool:
        return self.queries.is_stopping

    def readiness(self, gates: readiness.Gates) -> readiness.Readiness:
        """Judge what is loaded and who is there now."""
        waiting = [
            f"dataset {state.name} ({state.status})"
            for state in self.catalog.datasets.values()
            if not state.is_ready
        ]
        waiting += [
            f"view {view.name} ({view.status}{_waiting(view)})"
            for view in self.catalog.views.values()
            if view.status != "ready"
        ]
        waiting += [
            f"model {model.name} ({model.status})"
            for model in self.models.states.values()
            if not model.was_ready
        ]
        waiting += [
            f"embedding model {state.name} ({state.status})"
            for state in self.embeddings.states.values()
            if state.declared.is_declared and not state.was_ready
        ]
        if not self.catalog.version:
            waiting.append("catalog (initializing)")
        if self.life.is_leaving:
            waiting.append("this process (shutting down)")
        return readiness.evaluate(waiting, self.dispatch.executors(), gates)


def _waiting(view: ViewState) -> str:
    return f": waits for {view.waits_for}" if view.waits_for else ""
