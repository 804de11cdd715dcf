"""Samples the metrics of runtimes, for the monitors and for the routes that show them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from sqlalchemy import delete, select

from caraway_core.concurrency import tasks
from caraway_core.errors import CarawayError
from caraway_management.domain import deployments, samples
from caraway_management.passthrough.runtimes import Runtimes
from caraway_management.services import Services
from caraway_management.store.tables import MetricSample, Project

logger = logging.getLogger(__name__)
EVERY_S = 30.0
KEPT = timedelta(days=8)
"""A day more than the longest window."""
_SILENCE_S = 5.0
_AT_ONCE = 32
_FORGET_AT_ONCE = 10_000


class Sampler:
    """Reads the metrics of every runtime, if this is the instance that may."""

    def __init__(
        self,
        services: Services,
        runtimes: Runtimes,
        may_sample: Callable[[], Awaitable[bool]],
    ) -> None:
        """Take what says whether this instance may; one of several does."""
        self._services = services
        self._runtimes = runtimes
        self._may_sample = may_sample
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            try:
                await self.run_once()
            except CarawayError as exc:
                logger.warning("metrics are not sampled", extra={"reason": exc.message})
            await asyncio.sleep(EVERY_S)

    async def run_once(self) -> int:
        """Keep a sample of each runtime, forget old ones, and return how many there are."""
        if not await self._may_sample():
            return 0
        services = self._services
        deployed = select(Project.id, Project.created_at).where(
            Project.deleted_at.is_(None), Project.paused_at.is_(None), Project.endpoint.is_not(None)
        )
        async with services.database.read() as session:
            rows = (await session.execute(deployed.order_by(Project.id))).all()
        found = await tasks.together(
            [self._sample(id_, deployments.mark(created_at)) for id_, created_at in rows]
        )
        now = services.now()
        old = select(MetricSample.id).where(MetricSample.at < now - KEPT).limit(_FORGET_AT_ONCE)
        async with services.database.change() as session:
            session.add_all(
                MetricSample(project_id=id_, at=now, values=values)
                for (id_, _), values in zip(rows, found, strict=True)
            )
            await session.execute(delete(MetricSample).where(MetricSample.id.in_(old)))
        return len(rows)

    async def _sample(self, project_id: int, created: int) -> dict[str, object]:
        """Return the values of a runtime; those of one that does not answer say only that."""
        async with self._places:
            try:
                seen = await self._services.deployer.observe(project_id, created)
                if seen.metrics_endpoint is None:
                    return samples.combine([], 1)
                url = f"{seen.metrics_endpoint.rstrip('/')}/metrics"
                page = await self._runtimes.read_page(url, _SILENCE_S)
                return samples.combine([samples.read(page)], 1)
            except (CarawayError, ValueError) as exc:
                logger.info(
                    "a runtime has no metrics",
                    extra={"project": project_id, "reason": type(exc).__name__},
                )
                return samples.combine([], 1)
