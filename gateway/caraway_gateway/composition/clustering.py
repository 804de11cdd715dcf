"""A scheduler joins its cluster: its own Ray node, the fleet, the store, and who is there."""

import shutil
import uuid
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from caraway_assist.hosting.service import Hosting
from caraway_core import ray_nodes
from caraway_core.errors import CarawayError
from caraway_core.loading import registry
from caraway_core.manifest.texts import memory
from caraway_core.process.data_directory import DataDirectory
from caraway_core.protocols.state import StateStore
from caraway_core.ray_nodes import NodeOptions
from caraway_core.settings import JoinOptions, SchedulerOptions
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from caraway_gateway.composition import state
from caraway_gateway.composition.backend import Backend
from caraway_gateway.composition.presence import Presence
from caraway_gateway.services import Operating
from caraway_scheduler.dispatch.cluster import ClusterDispatch
from caraway_scheduler.dispatch.fleets.joining import RayDriver
from caraway_scheduler.dispatch.fleets.own_files import OwnFiles
from caraway_scheduler.dispatch.fleets.ray_fleet import RayFleet
from caraway_scheduler.dispatch.single.memory_owner import MemoryOwner
from caraway_scheduler.membership import Membership
from caraway_scheduler.membership.registrations import others_are_registered, stored_channels

_STORE_SHARE = "20%"
_SHM_SHARE = 0.5


async def join(
    options: SchedulerOptions,
    engine: EngineSettings,
    policy: Policy,
    data: DataDirectory,
    stack: AsyncExitStack,
    engines: object = None,
) -> Backend:
    """Join; the stack leaves again. `engines` starts engine processes, if that was begun before.

    Raises:
        CarawayError: the head does not respond for long, or the state store cannot be used.
    """
    store = await state.opened(options.state, data.path / state.STATE_FILE, stack)
    token = ray_nodes.read_token(options.join.token_file)
    variables = ray_nodes.environment(options.join.token_file)
    driver = RayDriver(options.join.head, options.join.node_ip, variables)
    fleet = RayFleet(token, driver, partial(stored_channels, store))
    presence = Presence(_node_options(options.join, data.path / "ray"), fleet)
    stack.push_async_callback(presence.aclose)
    scheduler_id = options.scheduler_id or data.node_id
    await presence.join_cluster(
        partial(_are_reachable, store), partial(others_are_registered, store, scheduler_id)
    )
    membership = Membership(fleet, store, scheduler_id)
    local = registry.ENGINES.load("planner")(engine, engines)
    dispatch = ClusterDispatch(
        fleet,
        membership,
        local,
        # A process counts the versions of its catalog from 1: after a restart it is another one.
        f"{scheduler_id}/{uuid.uuid4().hex[:8]}",
        MemoryOwner(store),
        policy,
        OwnFiles(data.cache),
    )
    stack.push_async_callback(dispatch.aclose)
    hosting = Hosting(fleet, membership, scheduler_id)
    stack.push_async_callback(hosting.aclose)
    return Backend(
        dispatch,
        is_scheduler=True,
        keepers=(partial(membership.run, dispatch), dispatch.warmer.run, presence.run),
        tallies=dispatch.tallies,
        scheduler_count=lambda: membership.scheduler_count,
        record_work=dispatch.record_work,
        report_failures=dispatch.report_failures,
        scheduler_id=scheduler_id,
        state=store,
        is_shared=options.state is not None,
        hosting=hosting,
        engines=local.report,
        operating=Operating(membership, token, dispatch.read_offer),
    )


async def _are_reachable(store: StateStore) -> bool:
    """Return whether there are addresses of executors; False if the store does not say."""
    try:
        return bool(await stored_channels(store))
    except CarawayError:
        return False


def _node_options(join: JoinOptions, folder: Path) -> NodeOptions:
    """Return the options of a node without cores: Ray places nothing on a scheduler's node."""
    return NodeOptions(
        head=join.head,
        joins=True,
        node_ip=join.node_ip,
        cores=0,
        object_store_bytes=join.object_store_bytes or _object_store_bytes(),
        folder=folder,
        token_file=join.token_file,
    )


def _object_store_bytes() -> int:
    room = shutil.disk_usage("/dev/shm").free if Path("/dev/shm").is_dir() else 0
    return min(memory.limit_bytes(_STORE_SHARE), int(room * _SHM_SHARE))
