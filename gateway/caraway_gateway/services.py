"""Holds the parts of one scheduler process, which `composition` builds once at start."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from caraway_acceleration.service import Accelerations
from caraway_assist.embeddings.service import Embeddings
from caraway_assist.models.service import Models
from caraway_assist.nsql import NsqlService
from caraway_assist.search.rerankers import RerankerModels
from caraway_assist.search.service import SearchService
from caraway_assist.tools import ToolService
from caraway_assist.workers.service import WorkerService
from caraway_core.concurrency.quotas import Quota
from caraway_core.errors import CarawayError
from caraway_core.ids import ExecutorId
from caraway_core.manifest import Manifest
from caraway_core.packages.making import PackageMaker
from caraway_core.process.folder_size import FolderSize
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.protocols.engines import EngineReport
from caraway_core.security.signatures import SignatureGate
from caraway_gateway.iceberg.service import IcebergTables
from caraway_gateway.mcp.endpoint import McpEndpoint
from caraway_scheduler import readiness
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies
from caraway_scheduler.dispatch.wrappers.functions import ManifestFunctions
from caraway_scheduler.history.recent import RecentSamples
from caraway_scheduler.history.tasks import TaskHistory
from caraway_scheduler.history.verdicts import VerdictFile
from caraway_scheduler.jobs.opening import Jobs
from caraway_scheduler.membership import Membership
from caraway_scheduler.queries import active
from caraway_scheduler.queries.service import QueryService
from caraway_scheduler.readiness import Gates, Readiness, UnreadyPart
from caraway_serving.access import Keyring
from caraway_serving.limits import InForce
from caraway_serving.tallies import ApiTallies

ConnectionStatus = Literal["Ready", "Initializing", "Disabled", "Error"]


@dataclass(slots=True)
class Connection:
    """One listener of this process, as `/v1/status` shows it."""

    name: Literal["http", "flight", "metrics", "opentelemetry"]
    endpoint: str = "N/A"
    status: ConnectionStatus = "Disabled"


@dataclass(frozen=True, slots=True)
class Operating:
    """The operations for operators of a cluster, and the token that authenticates them."""

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
    """The phase of this process between its start and its end."""

    is_settled: bool = False
    """Each part of the manifest was loaded, or was in error, at one time."""
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
    tables: IcebergTables
    verdicts: VerdictFile
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
    data_size: FolderSize | None = None
    """That of the data directory."""
    scheduler_count: Callable[[], int] = lambda: 1
    limits: InForce = field(default_factory=InForce)
    packages: PackageMaker = field(default_factory=PackageMaker)
    quotas: dict[str, Quota[Any]] = field(default_factory=dict)
    """The quotas of tables that all callers share, by table."""
    recent: RecentSamples = field(default_factory=RecentSamples)
    stage_streams: Quota[object] = field(default_factory=active.stage_streams)
    operating: Operating | None = None
    """None where there is no cluster."""
    life: Life = field(default_factory=Life)

    @property
    def is_stopping(self) -> bool:
        return self.queries.is_stopping

    def readiness(self, gates: Gates) -> Readiness:
        """Determine the readiness from the components and executors of the moment."""
        waiting = [str(part) for part in self.unready_parts()]
        if not self.catalog.version:
            waiting.append("catalog (initializing)")
        if self.life.is_leaving:
            waiting.append("this process (shutting down)")
        return readiness.evaluate(waiting, self.dispatch.executors(), gates)

    def serves(self, gates: Gates) -> Readiness:
        """Judge whether requests may be sent here.

        At first each part has to be loaded or in error. After that it is up to each request.
        """
        waiting: list[str] = []
        if not self.life.is_settled:
            waiting += [str(part) for part in self.unready_parts() if not part.is_settled]
            if not self.catalog.version:
                waiting.append("catalog (initializing)")
            self.life.is_settled = not waiting
        return readiness.evaluate(waiting, self.dispatch.executors(), gates)

    def unready_parts(self) -> Iterator[UnreadyPart]:
        """Yield the parts of the manifest that are not ready, with the reasons."""
        for dataset in self.catalog.datasets.values():
            if not dataset.is_ready:
                yield _unready("dataset", dataset, dataset.status, is_settled=dataset.was_tried)
        for view in self.catalog.views.values():
            if view.status != "ready":
                waits = f": waits for {view.waits_for}" if view.waits_for else ""
                yield _unready("view", view, view.status + waits, is_settled=view.error is not None)
        for model in self.models.states.values():
            if not model.was_ready:
                yield _unready("model", model, model.status, is_settled=model.settled.is_set())
        for state in self.embeddings.states.values():
            if state.declared.is_declared and not state.was_ready:
                was_tried = state.settled.is_set()
                yield _unready("embedding model", state, state.status, is_settled=was_tried)


class _Part(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def error(self) -> CarawayError | None: ...


def _unready(kind: str, part: _Part, status: str, *, is_settled: bool) -> UnreadyPart:
    reason = "" if part.error is None else part.error.message
    return UnreadyPart(kind, part.name, status, reason, is_settled)
