"""Changes of a manifest are seen from the moment in which its process has loaded it."""

import asyncio
from pathlib import Path
from typing import Any, cast

from caraway_core import manifest as manifests
from caraway_gateway.composition.reloading import Reloader
from caraway_gateway.services import Services


async def test_a_change_before_watching_begins_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "caraway.yaml"
    path.write_text("version: v1\nkind: Caraway\nname: test\n")
    requested = asyncio.Event()
    no_services: Any = None
    reloader = Reloader(manifests.load(path), cast(Services, no_services), requested)
    path.write_text("version: v1\nkind: Caraway\nname: other\n")
    watching = asyncio.create_task(reloader._watch())
    async with asyncio.timeout(60):
        await requested.wait()
    watching.cancel()
    await asyncio.wait((watching,))
