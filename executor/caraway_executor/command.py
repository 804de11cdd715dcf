"""The `caraway executor` command: runs an executor until a signal ends it."""

import asyncio
import functools
import shutil
import socket
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from caraway_core import ray_nodes
from caraway_core.ids import ExecutorId
from caraway_core.manifest.texts import memory
from caraway_core.process import cores, exiting, logs
from caraway_core.process.data_directory import DataDirectory
from caraway_core.protocols.fleet import Description
from caraway_core.ray_nodes import NodeOptions
from caraway_core.releases.protocol_versions import SPOKEN
from caraway_core.settings import ExecutorOptions
from caraway_engine.execution import processes
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.endpoints.probes import ProbeServer
from caraway_executor.part_options import PartServing
from caraway_executor.supervisor import Supervisor

_MEMORY_SHARE = "50%"
_STORE_SHARE = "20%"
_SHM_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class _Plan:
    node: NodeOptions
    identity: Description
    engine: EngineSettings
    files: Path
    parts: PartServing | None = None


def run(options: ExecutorOptions) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code.

    Raises:
        CarawayError: it cannot start, or cannot rejoin its cluster.
    """
    processes.prepare()
    ray_nodes.read_token(options.join.token_file)
    with (
        DataDirectory(options.data_dir) as data,
        ray_nodes.diverted(data.path / "ray" / "driver.log") as stderr,
    ):
        logs.configure(options.log_format, stream=stderr)
        return asyncio.run(_serve(options, _plan(options, data)))


async def _serve(options: ExecutorOptions, plan: _Plan) -> int:
    supervisor = Supervisor(
        plan.node,
        plan.identity,
        plan.engine,
        plan.files,
        options.drain_timeout_s,
        options.ready_fd,
        plan.parts,
    )
    supervisor.bound_end = functools.partial(exiting.bound, head=options.join.head)
    with ProbeServer(options.metrics, supervisor.seen) as probes:
        supervisor.metrics = probes.address
        await supervisor.run()
    return 0


def _plan(options: ExecutorOptions, data: DataDirectory) -> _Plan:
    join = options.join
    count = options.cores or cores.available()
    memory_bytes = options.memory_bytes or memory.limit_bytes(_MEMORY_SHARE)
    node = NodeOptions(
        head=join.head,
        joins=True,
        node_ip=join.node_ip,
        cores=count,
        object_store_bytes=join.object_store_bytes or _object_store_bytes(),
        folder=data.path / "ray",
        token_file=join.token_file,
    )
    identity = Description(
        executor_id=ExecutorId(options.executor_id or f"{socket.gethostname()}-{data.node_id[:8]}"),
        incarnation="",
        protocol_version=SPOKEN.oldest,
        newest_version=SPOKEN.newest,
        build=metadata.version("caraway"),
        address=join.node_ip or socket.gethostname(),
        cores=count,
        memory_bytes=memory_bytes,
        gpus=cores.gpus(),
    )
    parts = None
    if options.flight is not None:
        parts = PartServing.from_options(options.flight, identity.address, join.token_file)
    engine = EngineSettings(count, memory_bytes, data.spill, chunks_directory=data.chunks)
    return _Plan(node, identity, engine, data.cache / "of-schedulers", parts)


def _object_store_bytes() -> int:
    room = shutil.disk_usage("/dev/shm").free if Path("/dev/shm").is_dir() else 0
    return min(memory.limit_bytes(_STORE_SHARE), int(room * _SHM_SHARE))
