"""Makes, changes and removes reactions of projects."""

import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import monitors, names, reactions, refusals
from caraway_management.domain.monitoring import State
from caraway_management.monitoring.resources import text_of
from caraway_management.monitoring.targets import TargetKeeper, show
from caraway_management.store.tables import Org, Project, Reaction


async def list_reactions(
    session: AsyncSession, project_id: int, limit: int, offset: int
) -> Sequence[Reaction]:
    """Return a page of reactions, the oldest first."""
    query = select(Reaction).where(Reaction.project_id == project_id)
    query = query.order_by(Reaction.created_at, Reaction.id).limit(limit).offset(offset)
    return (await session.scalars(query)).all()


async def list_waiting(
    session: AsyncSession, kinds: Iterable[str]
) -> list[tuple[Project, list[Reaction]]]:
    """Return the running projects that have reactions of some kinds, with these."""
    rows = await session.execute(
        select(Project, Reaction)
        .join(Reaction, Reaction.project_id == Project.id)
        .join(Org, Org.id == Project.org_id)
        .where(Reaction.is_enabled, Reaction.kind.in_(list(kinds)))
        .where(Org.deleted_at.is_(None), Project.deleted_at.is_(None))
        .where(Project.paused_at.is_(None), Project.endpoint.is_not(None))
        .order_by(Project.id, Reaction.id)
    )
    return [
        (project, [reaction for _, reaction in group])
        for project, group in itertools.groupby(rows, key=lambda row: row[0])
    ]


async def find_reaction(
    session: AsyncSession, project_id: int, id_: str, *, locks: bool = False
) -> Reaction:
    """Return a reaction.

    Raises:
        RefusedError: it does not exist, or is of another project.
    """
    query = select(Reaction).where(Reaction.project_id == project_id, Reaction.id == id_)
    reaction = await session.scalar(query.with_for_update() if locks else query)
    if reaction is None:
        raise refusals.not_found("reaction", id_[:40])
    return reaction


async def create_reaction(
    session: AsyncSession,
    now: datetime,
    project: Project,
    given: Mapping[str, Any],
    keeper: TargetKeeper,
) -> tuple[Reaction, str | None]:
    """Add a reaction; return it, and the signing secret of its webhook if one was made.

    The caller has locked the project.

    Raises:
        RefusedError: it is not valid, its name is in use, or there are too many.
    """
    if project.paused_at is not None:
        raise refusals.conflict("the project is paused; resume it first", "project_paused")
    kind = reactions.check_kind(given["kind"])
    name = monitors.check_name(given["name"])
    await _check_name(session, project.id, name)
    count = await session.scalar(
        select(func.count()).select_from(Reaction).where(Reaction.project_id == project.id)
    )
    if (count or 0) >= reactions.MOST_OF_PROJECT:
        raise refusals.conflict(
            f"a project has at most {reactions.MOST_OF_PROJECT} reactions, disabled ones "
            "included; delete one",
            "reaction_limit",
        )
    id_ = str(uuid.uuid4())
    kept = await keeper.keep(id_, given["targets"])
    reaction = Reaction(
        id=id_,
        org_id=project.org_id,
        project_id=project.id,
        name=name,
        name_key=names.key(name),
        kind=kind,
        spec=reactions.read_spec(kind, given.get("spec", {})),
        targets=kept.stored,
        is_enabled=given.get("enabled", True),
        cursor=reactions.first_cursor(now),
        state=State.OK,
        created_at=now,
        updated_at=now,
    )
    session.add(reaction)
    await session.flush()
    return reaction, kept.signing_secret


async def update_reaction(
    session: AsyncSession,
    now: datetime,
    reaction: Reaction,
    given: Mapping[str, Any],
    keeper: TargetKeeper,
) -> str | None:
    """Change what a request gives of a reaction; return the signing secret if one was made.

    A changed condition is judged from the beginning.

    Raises:
        RefusedError: it is not valid, or its name is in use.
    """
    if "name" in given:
        name = monitors.check_name(given["name"])
        if names.key(name) != reaction.name_key:
            await _check_name(session, reaction.project_id, name)
        reaction.name, reaction.name_key = name, names.key(name)
    spec, is_enabled = reaction.spec, given.get("enabled", reaction.is_enabled)
    if "spec" in given:
        spec = reactions.read_spec(reaction.kind, {**spec, **given["spec"]})
    if is_enabled and not reaction.is_enabled:
        # Events while it was disabled do not count.
        reaction.cursor = reactions.first_cursor(now)
    if spec != reaction.spec or is_enabled != reaction.is_enabled:
        reaction.state, reaction.since, reaction.calm_since = State.OK, None, None
        reaction.evaluation_unavailable_reason = None
    reaction.spec, reaction.is_enabled = spec, is_enabled
    made: str | None = None
    if "targets" in given:
        kept = await keeper.keep(reaction.id, given["targets"], reaction.targets)
        reaction.targets, made = kept.stored, kept.signing_secret
    reaction.revision += 1
    reaction.updated_at = now
    await session.flush()
    return made


def view(reaction: Reaction, signing_secret: str | None = None) -> dict[str, object]:
    """Return a reaction as replies show it."""
    return {
        "id": reaction.id,
        "name": reaction.name,
        "kind": reaction.kind,
        "spec": reaction.spec,
        "targets": show(reaction.targets, signing_secret),
        "enabled": reaction.is_enabled,
        "state": reaction.state,
        "since": text_of(reaction.since),
        "last_fired_at": text_of(reaction.last_fired_at),
        "last_resolved_at": text_of(reaction.last_resolved_at),
        "suspended_code": "query_too_slow" if reaction.state == State.SUSPENDED else None,
        "evaluation_unavailable_reason": reaction.evaluation_unavailable_reason,
        "revision": reaction.revision,
        "created_at": text_of(reaction.created_at),
        "updated_at": text_of(reaction.updated_at),
    }


async def _check_name(session: AsyncSession, project_id: int, name: str) -> None:
    query = select(Reaction.id).where(
        Reaction.project_id == project_id, Reaction.name_key == names.key(name)
    )
    if await session.scalar(query):
        raise refusals.conflict(f"Reaction '{name}' already exists", "reaction_name_taken")
