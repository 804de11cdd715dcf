"""Reactions of projects."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from caraway_management.api import revisions
from caraway_management.api.access import Caller, ProjectId, needs
from caraway_management.api.bodies import Body
from caraway_management.api.monitors import keeper
from caraway_management.api.notice_bodies import Targets
from caraway_management.api.paging import Paged
from caraway_management.api.revisions import TAKES_IF_MATCH
from caraway_management.domain.monitors import Severity
from caraway_management.monitoring import reactions, resources
from caraway_management.projects import finding
from caraway_management.store.tables import Reaction

router = APIRouter(tags=["reactions"])

ReactionId = Annotated[str, Path(alias="reactionId", description="The id of a reaction.")]
Reader = Annotated[Caller, needs("reactions:read")]
Writer = Annotated[Caller, needs("reactions:write")]
_Name = Annotated[str, Field(max_length=100)]


class ReactionSpec(Body):
    """Which events or rows a reaction matches. Each field is for some kinds."""

    tasks: Annotated[
        list[Annotated[str, Field(max_length=100)]],
        Field(max_length=20, description="Only these tasks, such as `sql_query`; default: all."),
    ] = Field(default_factory=list)
    thresholdMs: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] | None = None
    dataset: Annotated[
        str | None, Field(max_length=255, description="Whose rows a `dataset_row_match` is about.")
    ] = None
    where: Annotated[
        str | None, Field(max_length=8_192, description="A condition in SQL, as behind WHERE.")
    ] = None
    query: Annotated[
        str | None, Field(max_length=8_192, description="The SELECT of a `dataset_query`.")
    ] = None
    minRows: Annotated[int, Field(ge=1, le=100, description="How many rows; default 1.")] = 1
    sustainSecs: Annotated[
        int, Field(ge=0, le=86_400, description="How long they must match; default 0.")
    ] = 0
    severity: Severity = "warn"
    includeDetails: bool = True


class NewReaction(Body):
    """A reaction to add."""

    name: _Name
    kind: Annotated[str, Field(max_length=64)]
    spec: ReactionSpec = Field(default_factory=ReactionSpec)
    targets: Targets
    enabled: bool = True


class ChangedReaction(Body):
    """Changes of a reaction. `targets` replaces all targets."""

    name: _Name = ""
    spec: ReactionSpec = Field(default_factory=ReactionSpec)
    targets: Targets = Field(default_factory=Targets)
    enabled: bool = True
    revision: Annotated[
        int | None,
        Field(description="The revision that was read; 409 `reaction_changed` if it is stale."),
    ] = None


@router.get("/{projectId}/reactions")
async def list_reactions(caller: Reader, project_id: ProjectId, page: Paged) -> dict[str, object]:
    """List the reactions of a project. The shape of their fields is ours."""
    async with caller.services.database.read() as session:
        project = await finding.find_project(session, caller.org.id, project_id)
        found = await reactions.list_reactions(session, project.id, page.limit, page.offset)
    return {"reactions": [reactions.view(reaction) for reaction in found]}


@router.post("/{projectId}/reactions", status_code=201)
async def create_reaction(
    caller: Writer, project_id: ProjectId, body: NewReaction, response: Response
) -> dict[str, object]:
    """Add a reaction: a notice of the tasks that failed, timed out or were slow in a minute.

    Or of rows: `dataset_row_match` of a `dataset` that meet `where`, and `dataset_query` of a
    `query`. The query is in SQL, and its fields are ours. It is run every minute. One that is too
    slow ten times in a row is suspended: `suspended_code` is `query_too_slow`.
    """
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        given = body.model_dump(exclude_unset=True)
        reaction, secret = await reactions.create_reaction(
            session, change.now, project, given, keeper(caller, session)
        )
        change.on("reaction", reaction.id, reaction.name, project_id=project.id)
    return _shown(response, reaction, secret)


@router.get("/{projectId}/reactions/{reactionId}")
async def get_reaction(
    caller: Reader, project_id: ProjectId, reaction_id: ReactionId, response: Response
) -> dict[str, object]:
    """Return a reaction."""
    async with caller.services.database.read() as session:
        project = await finding.find_project(session, caller.org.id, project_id)
        return _shown(response, await reactions.find_reaction(session, project.id, reaction_id))


@router.patch("/{projectId}/reactions/{reactionId}", dependencies=TAKES_IF_MATCH)
async def update_reaction(
    caller: Writer,
    project_id: ProjectId,
    reaction_id: ReactionId,
    body: ChangedReaction,
    response: Response,
) -> dict[str, object]:
    """Change a reaction; its kind stays. 409 `reaction_changed` if `revision` is stale."""
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        reaction = await reactions.find_reaction(session, project.id, reaction_id, locks=True)
        change.on("reaction", reaction.id, reaction.name, project_id=project.id)
        resources.check_revision("reaction", reaction.revision, body.revision)
        revisions.check_if_match(caller.request, reaction.revision)
        given = body.model_dump(exclude_unset=True)
        secret = await reactions.update_reaction(
            session, change.now, reaction, given, keeper(caller, session)
        )
    return _shown(response, reaction, secret)


@router.delete("/{projectId}/reactions/{reactionId}", dependencies=TAKES_IF_MATCH)
async def delete_reaction(
    caller: Writer, project_id: ProjectId, reaction_id: ReactionId
) -> dict[str, object]:
    """Delete a reaction."""
    async with caller.change() as change:
        session = change.session
        project = await finding.find_project(session, caller.org.id, project_id, locks=True)
        reaction = await reactions.find_reaction(session, project.id, reaction_id, locks=True)
        change.on("reaction", reaction.id, reaction.name, project_id=project.id)
        revisions.check_if_match(caller.request, reaction.revision)
        await session.delete(reaction)
    return {"ok": True}


def _shown(response: Response, reaction: Reaction, secret: str | None = None) -> dict[str, object]:
    revisions.set_etag(response, reaction.revision)
    return reactions.view(reaction, secret)
