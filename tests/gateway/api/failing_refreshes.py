"""Waits until a refresh has failed."""

from tests.gateway.api.accelerating import (
    standing,
)
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running


async def failed(runtime: Running) -> str:
    """Wait for a refresh to fail; returns the reason."""

    async def look() -> str:
        told = await standing(runtime)
        return "" if "refresh" in told else str(told.get("error", ""))

    return str(await eventually(look, "the refresh fails"))
