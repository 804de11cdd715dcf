"""Writes the notices of monitors and reactions into the outbox: one entry per target."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management import outbox
from caraway_management.domain import reactions, watching
from caraway_management.domain.monitoring import Event, Verdict
from caraway_management.domain.monitors import TEMPLATES, Spec
from caraway_management.domain.reactions import Task
from caraway_management.notices.messages import Notice
from caraway_management.store.tables import Monitor, Reaction

KIND = "send notice"
MATCHED, NO_LONGER = "reaction.matched", "reaction.resolved"
_WORDS = {
    "GT": "more than", "GEQ": "at least", "LT": "less than", "LEQ": "at most", "EQ": "equal to",
    "NEQ": "other than",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Announcement:
    """A notice, and whose targets it goes to."""

    notice: Notice
    owner_kind: str
    """`monitor` or `reaction`."""
    owner_id: str
    org_id: int
    targets: Mapping[str, Any]


def announcement(
    now: datetime, monitor: Monitor, spec: Spec, verdict: Verdict, subject: str
) -> Announcement:
    """Return the announcement that a monitor fired or resolved."""
    assert verdict.event is not None
    template = TEMPLATES[monitor.template]
    state = "is" if verdict.event is Event.FIRED else "is not"
    window = f" over {spec.window}" if monitor.template != "dataset_status" else ""
    summary = (
        f"{template.title}{window} {state} {_WORDS[spec.op]} {spec.threshold:g}{template.unit}."
    )
    data: dict[str, object] = {
        "monitor_id": monitor.id,
        "template": monitor.template,
        "severity": spec.severity,
        "project_id": monitor.project_id or None,
        "cluster_name": monitor.cluster_name or None,
    }
    if spec.includes_details:
        data["details"] = {
            "value": verdict.measured.value,
            "unit": template.unit,
            "op": spec.op,
            "threshold": spec.threshold,
            "window": spec.window,
            **verdict.measured.details,
        }
    notice = Notice(_new_id(), verdict.event, now, monitor.name, subject, summary, data)
    return Announcement(notice, "monitor", monitor.id, monitor.org_id, monitor.targets)


def match(now: datetime, reaction: Reaction, found: Sequence[Task], subject: str) -> Announcement:
    """Return the announcement that tasks matched a reaction: one for all of a look."""
    details = {"tasks": [task.as_json() for task in found[: reactions.MOST_SHOWN]]}
    summary = reactions.summary(reaction.kind, found)
    return _of_reaction(now, reaction, MATCHED, len(found), details, summary, subject)


def rows(now: datetime, reaction: Reaction, verdict: Verdict, subject: str) -> Announcement:
    """Return the announcement that rows match a reaction, or that they no longer do."""
    type_ = MATCHED if verdict.event is Event.FIRED else NO_LONGER
    count = verdict.measured.value or 0
    summary = watching.summary(reaction.kind, reaction.spec, count)
    return _of_reaction(
        now, reaction, type_, int(count), verdict.measured.details, summary, subject
    )


def _of_reaction(
    now: datetime,
    reaction: Reaction,
    type_: str,
    count: int,
    details: Mapping[str, object],
    summary: str,
    subject: str,
) -> Announcement:
    data: dict[str, object] = {
        "reaction_id": reaction.id,
        "kind": reaction.kind,
        "severity": reaction.spec["severity"],
        "project_id": reaction.project_id,
        "count": count,
    }
    if reaction.spec["includeDetails"]:
        data["details"] = details
    notice = Notice(_new_id(), type_, now, reaction.name, subject, summary, data)
    return Announcement(notice, "reaction", reaction.id, reaction.org_id, reaction.targets)


async def enqueue(session: AsyncSession, now: datetime, announced: Announcement) -> None:
    """Add the notices of an announcement to the transaction of the change."""
    for name, target in announced.targets.items():
        if target.get("disabled_reason") is not None:
            continue
        # Notices of one target are sent in order, and do not wait for other targets.
        await outbox.enqueue(
            session, now, KIND, f"{announced.owner_kind}:{announced.owner_id}:{name}",
            {
                "owner_kind": announced.owner_kind,
                "owner_id": announced.owner_id,
                "target": name,
                "notice": announced.notice.as_json(),
            },
        )  # fmt: skip


def _new_id() -> str:
    return f"msg_{uuid.uuid4().hex}"
