"""A runtime to which the operator signs its calls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from caraway_core.ids import CatalogVersion
from caraway_core.protocols.fleet import TableCatalog
from caraway_gateway.composition import app
from caraway_gateway.services import Operating
from caraway_scheduler.membership import Membership
from tests.gateway.api.gate_clusters import cluster, settled
from tests.kit.clocks import Clock
from tests.kit.fleets import FakeFleet
from tests.kit.runtime import Running

TOKEN = "s3cret"
SIGNED = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def operated(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fleet: FakeFleet, clock: Clock
) -> AsyncIterator[tuple[Running, Membership, httpx.AsyncClient]]:
    async with cluster(folder, monkeypatch, fleet, clock) as (runtime, membership):
        await membership.install(TableCatalog(CatalogVersion(1), "here", {}))
        await settled(membership, **dict.fromkeys(fleet.executors, "ready"))
        services = replace(runtime.services, operating=Operating(membership, TOKEN))
        transport = httpx.ASGITransport(app.build_metrics(services))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://metrics.test", headers=SIGNED
        ) as operator:
            yield replace(runtime, services=services), membership, operator
