"""The asynchronous query API of runtimes, passed through. Its routes here are ours."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Header, Path, Query, Request

from caraway_management.api.access import INSTANCE, MOST_ID, Caller, ProjectId, needs
from caraway_management.api.forwarding import Forwarded, Target
from caraway_management.domain import refusals
from caraway_management.domain.plans import Limits
from caraway_management.domain.refusals import RefusedError
from caraway_management.passthrough import active
from caraway_management.passthrough.passing import Passthrough
from caraway_management.passthrough.runtimes import Runtime

_PATH = "/v1/queries"
_Reader = Annotated[Caller, needs("queries:read")]
_Writer = Annotated[Caller, needs("queries:write")]
_QueryId = Annotated[str, Path(alias="queryId", pattern=r"^[A-Za-z0-9-]{1,64}$")]
_SUBMISSION: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["sql"],
                    "properties": {
                        "sql": {"type": "string", "description": "The statement."},
                        "parameters": {"description": "A list for `$1`, an object for `$name`."},
                        "timeout_seconds": {"type": "integer", "minimum": 0},
                        "maximum_size": {"type": "integer", "minimum": 0},
                    },
                }
            }
        },
    }
}
_Index = Annotated[int, Path(ge=0, le=2**31)]


async def _named_project(
    request: Request,
    x_project_id: Annotated[
        str | None, Header(description="The id of the project. Or send `project_id`.")
    ] = None,
    project_id: Annotated[
        str | None, Query(description="The id of the project. Or send `X-Project-Id`.")
    ] = None,
) -> int:
    # Each may be there twice; the parameters above are for the description.
    given = {*request.headers.getlist("x-project-id"), *request.query_params.getlist("project_id")}
    if not given:
        raise refusals.invalid(
            "name the project: send X-Project-Id or the parameter project_id", "project_required"
        )
    text = given.pop()
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    if given or not is_number or not 1 <= int(text) <= MOST_ID:
        raise refusals.invalid(
            "X-Project-Id and project_id must be the id of one project", "invalid_project_id"
        )
    return int(text)


async def _project_of_path(project_id: ProjectId) -> int:
    return project_id


def _build(find_project: object, suffix: str) -> APIRouter:
    """Return the routes, with the project from where `find_project` finds it."""
    built = APIRouter(tags=["queries"])
    Of = Annotated[int, Depends(find_project)]

    # The body is not read here: it goes to the runtime as it comes.
    @built.post("", name=f"submit_query{suffix}", status_code=202, openapi_extra=_SUBMISSION)
    async def submit_query(request: Request, caller: _Writer, project: Of) -> Forwarded:
        """Submit a query to the runtime of a project."""
        return await _pass(request, caller, project, "", is_submission=True)

    @built.get("", name=f"list_queries{suffix}")
    async def list_queries(
        request: Request,
        caller: _Reader,
        project: Of,
        status: Annotated[str | None, Query(description="Only those with this status.")] = None,
        limit: Annotated[int | None, Query(description="At most this many.")] = None,
    ) -> Forwarded:
        """List queries that were submitted to the runtime of a project through this service."""
        return await _pass(request, caller, project, "")

    @built.get("/{queryId}", name=f"get_query{suffix}")
    async def get_query(
        request: Request, caller: _Reader, project: Of, query_id: _QueryId
    ) -> Forwarded:
        """Return a query with the first part of its result."""
        return await _pass(request, caller, project, f"/{query_id}")

    @built.get("/{queryId}/status", name=f"get_query_status{suffix}")
    async def get_query_status(
        request: Request, caller: _Reader, project: Of, query_id: _QueryId
    ) -> Forwarded:
        """Return the status of a query."""
        return await _pass(request, caller, project, f"/{query_id}/status")

    @built.get("/{queryId}/results", name=f"get_query_results{suffix}")
    async def get_query_results(
        request: Request,
        caller: _Reader,
        project: Of,
        query_id: _QueryId,
        partition: Annotated[int | None, Query(description="The part of the result.")] = None,
        format: Annotated[str | None, Query(description="`json`.")] = None,
    ) -> Forwarded:
        """Return a part of the result of a query."""
        return await _pass(request, caller, project, f"/{query_id}/results")

    @built.get("/{queryId}/results/chunks/{index}", name=f"get_query_chunk{suffix}")
    async def get_query_chunk(
        request: Request, caller: _Reader, project: Of, query_id: _QueryId, index: _Index
    ) -> Forwarded:
        """Return a part of the result of a query."""
        return await _pass(request, caller, project, f"/{query_id}/results/chunks/{index}")

    @built.post("/{queryId}/cancel", name=f"cancel_query{suffix}")
    async def cancel_query(
        request: Request, caller: _Writer, project: Of, query_id: _QueryId
    ) -> Forwarded:
        """Cancel a query."""
        return await _pass(request, caller, project, f"/{query_id}/cancel")

    return built


router = APIRouter()
router.include_router(_build(_named_project, ""), prefix=_PATH)
of_projects = APIRouter()
of_projects.include_router(_build(_project_of_path, "_of_project"), prefix="/{projectId}/queries")


async def _pass(
    request: Request, caller: Caller, project_id: int, path: str, *, is_submission: bool = False
) -> Forwarded:
    services = caller.services
    passthrough: Passthrough = request.scope[INSTANCE].passthrough
    async with services.database.read() as session:
        found = await passthrough.targets.find(
            session, services.sealer, caller.org.id, caller.org.plan, project_id
        )
    runtime, limits = found.runtime, found.limits
    if request.method == "POST":
        services.database.later.check_room()
    if is_submission:
        await _admit(caller, passthrough, runtime, limits)

    async def ended(status: int) -> None:
        if status >= 400 and is_submission:
            passthrough.active.withdraw(caller.org.id, project_id)
        if status < 400 and request.method == "POST":
            # Nothing of this service changes: no response waits for the record.
            query_id = path.strip("/").partition("/")[0]
            caller.record_later("query", query_id, found.project, project_id)

    query = urlencode(_without_project(request.query_params.multi_items()))
    target = Target(
        runtime, request.method, _PATH + path, query, float(limits.request_timeout_secs)
    )
    return Forwarded(passthrough, caller.org.id, target, ended)


def _without_project(items: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in items if name != "project_id"]


async def _admit(
    caller: Caller, passthrough: Passthrough, runtime: Runtime, limits: Limits
) -> None:
    """Check that the organization may have one more active query."""
    services = caller.services

    async def count(project_id: int) -> int:
        if project_id == runtime.project_id:
            return await passthrough.count_active(runtime)
        try:
            async with services.database.read() as session:
                other = await passthrough.targets.find(
                    session, services.sealer, caller.org.id, caller.org.plan, project_id
                )
        except RefusedError:  # It has no runtime any more.
            return 0
        return await passthrough.count_active(other.runtime)

    await passthrough.active.admit(caller.org.id, runtime.project_id, active.bound(limits), count)
