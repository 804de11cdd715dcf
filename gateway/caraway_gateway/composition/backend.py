"""The parts that run the queries of a process; they differ alone and in a cluster."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from caraway_assist.hosting.service import Hosting
from caraway_core import manifest as manifests
from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.loading import registry
from caraway_core.manifest import Manifest
from caraway_core.manifest.texts import memory
from caraway_core.process import cores
from caraway_core.process.data_directory import DataDirectory
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.engines import EngineReport
from caraway_core.protocols.state import StateStore
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from caraway_gateway.services import Operating
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_scheduler.dispatch.tasks.reports import FinishedTask
from caraway_scheduler.dispatch.tasks.tallies import DispatchTallies

_MEMORY_SHARE = "70%"
FailedLater = Callable[[CatalogVersion, Mapping[TableName, str]], None]


@dataclass(frozen=True, slots=True)
class Backend:
    """The dispatch of queries, and the tasks that must run as long as it serves."""

    dispatch: Dispatch
    is_scheduler: bool = False
    keepers: Sequence[Callable[[], Coroutine[None, None, None]]] = ()
    tallies: DispatchTallies = field(default_factory=DispatchTallies)
    scheduler_count: Callable[[], int] = lambda: 1
    record_work: Callable[[Callable[[FinishedTask], None]], None] = lambda _record: None
    """Takes the function that records each piece of work on an executor."""
    report_failures: Callable[[FailedLater], None] = lambda _report: None
    """Takes the function that hears of tables that fail on an executor that joins later."""
    scheduler_id: str = ""
    state: StateStore | None = None
    """The store of a cluster's schedulers; alone, a process has a file of its own."""
    is_shared: bool = False
    """True if there may be other schedulers."""
    operating: Operating | None = None
    hosting: Hosting | None = None
    """Hosts models on executors, where there is a cluster."""
    engines: Callable[[], EngineReport] = EngineReport
    """Reports on the engine processes."""

    @property
    def token(self) -> str:
        """The token of the cluster; "" where there is no cluster."""
        return self.operating.token if self.operating else ""


def standalone(
    manifest: Manifest, data: DataDirectory, stack: AsyncExitStack, engines: object = None
) -> Backend:
    """One executor, whose engine runs in processes of its own, started by `engines` if given."""
    executor_class = registry.ENGINES.load("executor")
    settings = engine(manifest, data)
    executor = executor_class(settings, engines)
    dispatch = InProcessDispatch(
        executor,
        ExecutorId(data.node_id),
        usable_cores(manifest.runtime),
        settings.memory_limit_bytes or 0,
    )
    stack.push_async_callback(dispatch.aclose)
    return Backend(dispatch, engines=executor.report)


def usable_cores(settings: manifests.RuntimeSettings) -> int:
    """Return the number of cores that the manifest allows, or that there are."""
    return settings.cpu.cores or cores.available()


def engine(manifest: Manifest, data: DataDirectory) -> EngineSettings:
    """Return the bounds of the engine in this process."""
    settings, spill = manifest.runtime, data.spill
    query = settings.query
    return EngineSettings(
        target_partitions=query.target_partitions or usable_cores(settings),
        memory_limit_bytes=query.memory_limit_bytes or memory.limit_bytes(_MEMORY_SHARE),
        temp_directory=query.temp_directory or spill,
        spill_compression=query.spill_compression,
        chunks_directory=data.chunks,
        planning_timeout_s=query.planning_timeout_s,
    )


def policy(settings: manifests.RuntimeSettings) -> Policy:
    """Return what the manifest says of how queries are distributed in a cluster."""
    sizes = settings.query.distribution
    return Policy(
        small_table_bytes=sizes.small_table_bytes,
        broadcast_bytes=sizes.broadcast_bytes,
        gather_bytes=sizes.gather_bytes,
        partition_bytes=sizes.partition_bytes,
    )
