"""Reads the manifest again on SIGHUP, or when one of its files changes, and applies it."""

import asyncio
import logging
import os
from pathlib import Path

from caraway_core import manifest as manifests
from caraway_core.errors import CarawayError
from caraway_core.manifest import Manifest
from caraway_gateway.services import Services

logger = logging.getLogger(__name__)
_DEBOUNCE_MS = 200


class Reloader:
    """A manifest that cannot be used is logged, and the present one stays in force."""

    def __init__(self, manifest: Manifest, services: Services, requested: asyncio.Event) -> None:
        self._manifest = manifest
        self._services = services
        self._requested = requested
        # Before watching begins, which takes a moment: a change in it would never be seen.
        self._seen = _modified(manifest)

    async def run(self, watch: bool) -> None:
        """Reload whenever it is asked for, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            if watch:
                tasks.create_task(self._watch())
            while True:
                await self._requested.wait()
                self._requested.clear()
                await self._reload()

    async def _reload(self) -> None:
        try:
            manifest = await asyncio.to_thread(manifests.load, self._manifest.path)
            secrets = await asyncio.to_thread(manifests.build_resolver, manifest, os.environ)
        except CarawayError as exc:
            logger.error("manifest not reloaded; the present one stays in force",
                         extra={"reason": exc.message})  # fmt: skip
            return
        if manifest.runtime != self._manifest.runtime:
            logger.warning("the section `runtime` changed; it takes effect at the next start")
        if self._services.functions.apply(manifest):
            self._services.queries.invalidate()
            self._services.search.invalidate()
        changes = await self._services.catalog.apply(manifest, secrets)
        self._services.tools.apply(manifest, secrets)
        await self._services.models.apply(manifest, secrets)
        self._services.rerankers.apply(manifest, secrets)
        self._services.workers.apply(manifest)
        self._manifest = manifest
        self._services.manifest.current = manifest
        logger.info(
            "manifest reloaded",
            extra={
                "added": [dataset.name for dataset in changes.added],
                "replaced": [dataset.name for dataset in changes.replaced],
                "removed": list(changes.removed),
            },
        )

    async def _watch(self) -> None:
        """Watch the folders: editors and ConfigMaps replace files instead of writing to them."""
        import watchfiles  # Here: most processes do not watch.

        while True:
            folders = {file.parent for file in self._manifest.files}
            async for _ in watchfiles.awatch(
                *folders, recursive=False, debounce=_DEBOUNCE_MS, step=50, rust_timeout=1_000,
                yield_on_timeout=True,
            ):  # fmt: skip
                if (now := _modified(self._manifest)) != self._seen:
                    self._seen = now
                    self._requested.set()
                if {file.parent for file in self._manifest.files} != folders:
                    break


def _modified(manifest: Manifest) -> dict[Path, tuple[int, int] | None]:
    found: dict[Path, tuple[int, int] | None] = {}
    for file in manifest.files:
        try:
            status = file.stat()
            found[file] = (status.st_mtime_ns, status.st_size)
        except OSError:
            found[file] = None
    return found
