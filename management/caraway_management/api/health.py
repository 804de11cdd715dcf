"""`GET /v1/health`, and the probes of the service."""

from fastapi import APIRouter

from caraway_core.errors import CarawayError, UnavailableError
from caraway_management.api.access import GivenServices
from caraway_management.store import fitting

router = APIRouter()


@router.get("/v1/health", tags=["health"])
@router.get("/healthz", include_in_schema=False)
async def get_health(services: GivenServices) -> dict[str, object]:
    """Say that the process serves."""
    return {"status": "ok", "timestamp": services.now().isoformat()}


@router.get("/readyz", include_in_schema=False)
async def get_readiness(services: GivenServices) -> dict[str, object]:
    """Say that the process and its database serve, and that the tables are of this release."""
    try:
        problem = await fitting.problem(services.database)
    except CarawayError as exc:
        raise UnavailableError(exc.message) from exc
    if problem:
        raise UnavailableError(problem)
    return {"status": "ok"}
