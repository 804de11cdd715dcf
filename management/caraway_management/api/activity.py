"""The log of changes that succeeded or were refused. The form of its entries is ours."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from sqlalchemy import ColumnElement, select

from caraway_management.api import paging
from caraway_management.api.access import MOST_ID, Caller, needs
from caraway_management.domain import refusals
from caraway_management.store.tables import Activity

router = APIRouter(tags=["activity"])

_Text = Query(max_length=255, pattern=r"^[^\x00-\x1f]+$")
_Reader = Annotated[Caller, needs("activity:read")]


@router.get("/v1/activity")
async def list_activity(
    caller: _Reader,
    actor: Annotated[str | None, _Text] = None,
    action: Annotated[str | None, _Text] = None,
    resource: Annotated[
        str | None, Query(max_length=50, pattern=r"^[a-z_]+$", description="A kind of resource.")
    ] = None,
    resource_id: Annotated[str | None, _Text] = None,
    project_id: Annotated[int | None, Query(ge=1, le=MOST_ID)] = None,
    outcome: Annotated[Literal["succeeded", "refused"] | None, Query()] = None,
    since: Annotated[datetime | None, Query(description="From this time on.")] = None,
    until: Annotated[datetime | None, Query(description="Before this time.")] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="At most this many.")] = 20,
    cursor: Annotated[str | None, Query(description="The `next_cursor` of the last page.")] = None,
) -> dict[str, object]:
    """List the changes in the organization, and the refused ones, the newest first."""
    after = paging.read_cursor(cursor)
    elements: list[ColumnElement[bool]] = [
        column == value
        for column, value in (
            (Activity.actor, actor),
            (Activity.action, action),
            (Activity.resource_kind, resource),
            (Activity.resource_id, resource_id),
            (Activity.project_id, project_id),
            (Activity.outcome, outcome),
        )
        if value is not None
    ]
    if since is not None:
        elements.append(Activity.at >= _with_zone(since))
    if until is not None:
        elements.append(Activity.at < _with_zone(until))
    if after is not None:
        elements.append(Activity.id < min(after, MOST_ID))
    query = (
        select(Activity)
        .where(Activity.org_id == caller.org.id, *elements)
        .order_by(Activity.id.desc())
        .limit(limit)
    )
    database = caller.services.database
    # The list contains all changes that this instance has answered.
    await database.later.written()
    async with database.read() as session:
        activities = (await session.scalars(query)).all()
    next_cursor = paging.cursor_after([each.id for each in activities], limit)
    return {"activity": [_view(each) for each in activities], "next_cursor": next_cursor}


@router.get("/v1/activity/{id}")
async def get_activity(
    caller: _Reader, id_: Annotated[int, Path(alias="id", ge=1, le=MOST_ID)]
) -> dict[str, object]:
    """Return one entry of the log."""
    query = select(Activity).where(Activity.org_id == caller.org.id, Activity.id == id_)
    async with caller.services.database.read() as session:
        activity = await session.scalar(query)
    if activity is None:
        raise refusals.not_found("activity", id_)
    return _view(activity)


def _with_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _view(entry: Activity) -> dict[str, object]:
    return {
        "id": entry.id,
        "timestamp": entry.at.isoformat(),
        "actor": {"user_id": entry.actor_id, "name": entry.actor},
        "credential": {"kind": entry.credential_kind, "id": entry.credential_id},
        "action": entry.action,
        "resource": {
            "kind": entry.resource_kind,
            "id": entry.resource_id,
            "name": entry.resource_name,
        },
        "project_id": entry.project_id,
        "outcome": entry.outcome,
        "status": entry.status,
        "code": entry.code,
        "address": entry.address,
        "request_id": entry.request_id,
    }
