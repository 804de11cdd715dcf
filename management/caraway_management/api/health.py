"""`GET /v1/health`, and the probes of the service."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from caraway_core.errors import CarawayError, UnavailableError
from caraway_management.api.access import services_of
from caraway_management.services import Services

router = APIRouter()


@router.get("/v1/health", tags=["health"])
@router.get("/healthz", include_in_schema=False)
async def get_health(services: Annotated[Services, Depends(services_of)]) -> dict[str, Any]:
    """Say that the process serves."""
    return {"status": "ok", "timestamp": services.now().isoformat()}


@router.get("/readyz", include_in_schema=False)
async def get_readiness(services: Annotated[Services, Depends(services_of)]) -> dict[str, Any]:
    """Say that the process and its database serve."""
    try:
        await services.database.check()
    except CarawayError as exc:
        raise UnavailableError(exc.message) from exc
    return {"status": "ok"}
