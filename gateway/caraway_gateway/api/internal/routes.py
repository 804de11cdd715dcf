"""The routes `/internal/...`: load of the cluster, and drains of executors."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from starlette.responses import JSONResponse, Response

from caraway_core.errors import CarawayError, ExecutorLostError, outcomes
from caraway_core.ids import ExecutorId
from caraway_core.protocols.dispatch import ExecutorStatus
from caraway_core.releases import protocol_versions as versions
from caraway_core.releases.protocol_versions import SPOKEN
from caraway_core.security import signatures
from caraway_gateway.api import app_state
from caraway_scheduler.membership import Membership

_UNAUTHORIZED = (
    "this route needs a signature with the cluster's token, or `Authorization: Bearer TOKEN`"
)


@dataclass(frozen=True, slots=True)
class _Standing:
    """An executor of the internal listing; `running` counts its tasks for all schedulers."""

    id: ExecutorId
    state: str
    ready: bool
    draining: bool
    drained: bool
    running: int
    holds: list[str]
    incarnation: str
    reason: str | None


def operating(request: Request) -> Membership:
    """Authorize a request that proves knowledge of the cluster's token.

    Raises:
        HTTPException: 401 for all other requests.
    """
    found = app_state.services(request).operating
    assert found is not None, "the routes are served in a cluster only"
    shown, target = request.headers.get("authorization", ""), signatures.target_of(request.scope)
    if refused := found.gate.check(shown, request.method, target):
        message = f"{_UNAUTHORIZED}: {refused.reason}"
        headers = {"WWW-Authenticate": "Bearer", versions.HEADER: SPOKEN.header}
        raise HTTPException(401, message, headers)
    return found.membership


router = APIRouter(prefix="/internal", include_in_schema=False)
Operating = Annotated[Membership, Depends(operating)]


@router.get("/executors")
async def list_executors(members: Operating) -> Response:
    """List the executors, including lost and refused ones."""
    return _answer([_document(members, each) for each in members.executors()])


@router.post("/executors/{executor_id}/drain")
async def drain(executor_id: str, members: Operating) -> Response:
    """Let no scheduler give the executor new work; repeating this changes nothing."""
    try:
        await members.drain(ExecutorId(executor_id))
    except ExecutorLostError:
        return _unknown(executor_id)
    except CarawayError as exc:
        return _away(exc)
    return _standing(members, executor_id, 202)


@router.delete("/executors/{executor_id}/drain")
async def undo_drain(executor_id: str, members: Operating) -> Response:
    """Let the executor receive work again."""
    try:
        await members.undo_drain(ExecutorId(executor_id))
    except CarawayError as exc:
        return _away(exc)
    return _standing(members, executor_id, 200)


@router.get("/parts")
async def list_unready_parts(request: Request, members: Operating) -> Response:
    """List the parts of the manifest that are not ready, with the reasons."""
    parts = app_state.services(request).unready_parts()
    return _answer([asdict(part) for part in parts])


@router.get("/load")
async def load(request: Request, members: Operating) -> Response:
    """Report the waiting and running work of this scheduler, and the load of executors."""
    services = app_state.services(request)
    admission, jobs = services.queries.admission, services.jobs
    return _answer(
        {
            "queued": admission.queued,
            "running": len(services.queries.active) - admission.queued,
            "max_concurrent": admission.max_running,
            "jobs_queued": jobs.scheduler.queued,
            "jobs_running": jobs.scheduler.running,
            "schedulers": members.scheduler_count,
            "executors": [
                {
                    "id": each.executor_id,
                    "ready": each.is_ready,
                    "memory_used": each.memory_used_bytes,
                    "memory_limit": each.memory_bytes,
                    "running": each.active_tasks,
                }
                for each in members.executors()
                if each.is_registered
            ],
        }
    )


def _standing(members: Membership, executor_id: str, status: int) -> Response:
    executor_status = [each for each in members.executors() if each.executor_id == executor_id]
    if not executor_status:
        return _unknown(executor_id)
    return _answer(_document(members, executor_status[0]), status)


def _document(members: Membership, status: ExecutorStatus) -> dict[str, object]:
    return asdict(
        _Standing(
            status.executor_id,
            status.state,
            status.is_ready,
            status.state == "draining",
            members.has_drained(status.executor_id),
            status.active_tasks,
            list(status.holds),
            status.incarnation,
            status.reason or None,
        )
    )


def _unknown(executor_id: str) -> Response:
    return _answer({"error": f"executor '{executor_id}' is not in the cluster"}, 404)


def _away(exc: CarawayError) -> Response:
    return _answer({"error": outcomes.words(exc)}, 503, {"Retry-After": "2"})


def _answer(
    content: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer that says which versions of the protocol this scheduler speaks."""
    return JSONResponse(content, status, {**(headers or {}), versions.HEADER: SPOKEN.header})
