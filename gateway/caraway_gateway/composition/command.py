"""Implements `caraway run` and `caraway validate`."""

import asyncio
import gc
import os
import sys
from pathlib import Path

import uvloop

from caraway_core import manifest as manifests
from caraway_core import ray_nodes
from caraway_core.errors import ManifestError
from caraway_core.loading import imports, registry
from caraway_core.manifest import view_searches
from caraway_core.manifest.secrets import references
from caraway_core.process import arrow_memory, cores, exiting, logs
from caraway_core.process.data_directory import DataDirectory
from caraway_core.settings import RunOptions, SchedulerOptions


def run(options: RunOptions) -> int:
    """Serve a manifest until SIGTERM or SIGINT; returns the exit code.

    Raises:
        CarawayError: it cannot start.
    """
    # Manifests with columns import Arrow.
    with arrow_memory.limited():
        manifest = manifests.load(options.manifest)
    logs.configure(options.log_format, manifest.runtime.output_level or "info")
    cores.take_short_turns()
    # It imports the engine while this process imports the API.
    engines = registry.ENGINES.load("fork-server")()
    with imports.uncollected(), arrow_memory.limited():
        from caraway_gateway.composition.runtime import Runtime

    async def serve() -> None:
        with DataDirectory(options.data_dir) as data:
            runtime = Runtime(options, manifest, engines=engines)
            runtime.on_up = _settle
            await runtime.serve(data)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
    return 0


def _settle() -> None:
    """Leave what exists now out of collections.

    It stays until the end. A collection would visit it, 140,000 objects in 100 ms, while all
    requests wait.
    """
    gc.freeze()


def schedule(options: RunOptions, joining: SchedulerOptions) -> int:
    """Serve a manifest in a cluster until SIGTERM or SIGINT; returns the exit code.

    Raises:
        CarawayError: it cannot start, or lost its Ray node.
    """
    # Manifests with columns import Arrow.
    with arrow_memory.limited():
        manifest = manifests.load(options.manifest)
    ray_nodes.require()
    ray_nodes.read_token(joining.join.token_file)
    cores.take_short_turns()
    engines = registry.ENGINES.load("fork-server")()
    with imports.uncollected(), arrow_memory.limited():
        from caraway_gateway.composition.runtime import Runtime

    async def serve() -> None:
        # It announces on standard output, which Ray uses as well from here on.
        runtime = Runtime(options, manifest, joining, engines)
        runtime.on_up = _settle
        head = joining.join.head
        runtime.bound_end = lambda within_s, code: exiting.bound(within_s, head, code=code)
        with (
            DataDirectory(options.data_dir) as data,
            ray_nodes.diverted(data.path / "ray" / "driver.log") as stderr,
        ):
            level = manifest.runtime.output_level or "info"
            logs.configure(options.log_format, level, stderr)
            await runtime.serve(data)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
    return 0


def validate(path: Path, *, with_secrets: bool = True) -> int:
    """Check a manifest and say what is in it; secrets are looked up where it is checked.

    Raises:
        ManifestError: with everything that is wrong.
    """
    manifest = manifests.load(path, checks_params=True)
    problems = list(view_searches.problems(manifest))
    if with_secrets:
        problems += references.problems(manifest, os.environ)
    if problems:
        raise ManifestError(problems)
    # Imported here: most manifests have no function, and no view that searches.
    from caraway_gateway.composition import view_planning

    views = view_planning.planned(manifest)
    if views.problems:
        raise ManifestError(list(views.problems))
    for notice in (*manifest.notices, *views.notes):
        print(f"note: {notice}", file=sys.stderr)
    print(
        f"{manifest.path}: valid ({len(manifest.datasets)} datasets, {len(manifest.views)} views)"
    )
    return 0
