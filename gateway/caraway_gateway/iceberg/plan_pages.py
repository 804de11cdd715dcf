"""Pages of planned scans, in the place of the catalog: any scheduler finds them. Blocks."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from caraway_core.errors import NotFoundError
from caraway_gateway.iceberg.histories import now_ms
from caraway_plugins.stores.published import Published

FOLDER = "plans"
"""Has plans and their exports, which are deleted as unused states are."""
_MOST_TASKS = 2_000
_MOST_BYTES = 8 * 1024 * 1024
"""Of the filters in one page: each task has the filter of the scan."""
_ID = re.compile(r"[0-9a-f]{32}")
_TOKEN = re.compile(r"([0-9a-f]{32})\.([0-9]{1,6})")
_OWNER = "plan.json"
_CANCELLED = "cancelled"
_ASKED = "asked"


class NoPlanError(NotFoundError):
    """There is no such plan, or not any more."""


class NoPlanTaskError(NotFoundError):
    """There is no such part of a plan, or not any more."""


@dataclass(frozen=True, slots=True)
class PlanOwner:
    """The owner of a plan: a principal and a table, with the filter of the scan.

    The pages of a plan over files of a table are parts of its list of `tasks`, which is a file.
    """

    principal: str
    table: str
    filter: Any = None
    tasks: str = ""

    @property
    def most_tasks(self) -> int:
        """The number of tasks that a page may have."""
        return max(1, min(_MOST_TASKS, _MOST_BYTES // len(json.dumps(self.filter))))


@dataclass(frozen=True, slots=True)
class PlanPage:
    """Files to read, and what comes after them: nothing, another page, or a failure."""

    tasks: Sequence[dict[str, Any]] = ()
    is_last: bool = False
    failure: tuple[int, str] | None = None
    """A status of HTTP, and words for users."""


def new_id() -> str:
    """Return the id of a new plan, which no one can guess."""
    return uuid.uuid4().hex


def home(plan_id: str) -> str:
    """Return the folder of a plan."""
    return f"{FOLDER}/{plan_id}"


def token(plan_id: str, number: int) -> str:
    """Return the token of a page."""
    return f"{plan_id}.{number}"


def parsed(text: object) -> tuple[str, int]:
    """Return the plan and the number of the page that a token means.

    Raises:
        NoPlanTaskError: it is not a token.
    """
    match = _TOKEN.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise NoPlanTaskError("there is no such plan task; plan the scan again")
    return match[1], int(match[2])


def begin(place: Published, plan_id: str, owner: PlanOwner) -> None:
    """Write what a plan belongs to.

    Raises:
        ExecutionError: the place cannot be written.
    """
    document = [owner.principal, owner.table, owner.filter, owner.tasks]
    place.write(f"{home(plan_id)}/{_OWNER}", json.dumps(document).encode())


def owner(place: Published, plan_id: str, principal: str, table: str) -> PlanOwner:
    """Return what a plan belongs to, if that is a principal and a table.

    Raises:
        NoPlanError: there is no such plan.
        ExecutionError: the place cannot be read.
    """
    content = place.read(f"{home(plan_id)}/{_OWNER}") if _ID.fullmatch(plan_id) else None
    plan_owner = None if content is None else PlanOwner(*json.loads(content))
    if plan_owner is None or (plan_owner.principal, plan_owner.table) != (principal, table):
        raise NoPlanError("there is no such plan; plan the scan again")
    return plan_owner


def write(place: Published, plan_id: str, number: int, page: PlanPage) -> None:
    """Write a page.

    Raises:
        ExecutionError: the place cannot be written.
    """
    document = [list(page.tasks), page.is_last, page.failure]
    place.write(f"{home(plan_id)}/{number}.json", json.dumps(document, default=str).encode())


def read(place: Published, plan_id: str, number: int, belongs: PlanOwner) -> PlanPage | None:
    """Return a page; None where it is not there yet, or never will be.

    Raises:
        ExecutionError: the place cannot be read.
    """
    if belongs.tasks:
        return _part(place.read(belongs.tasks), number, belongs.most_tasks)
    content = place.read(f"{home(plan_id)}/{number}.json")
    if content is None:
        return None
    tasks, is_last, failure = json.loads(content)
    return PlanPage(tasks, is_last, failure and tuple(failure))


def check_follows(place: Published, plan_id: str, number: int, belongs: PlanOwner) -> None:
    """Check that a page that is not there may still be written.

    Raises:
        NoPlanTaskError: it will not.
        ExecutionError: the place cannot be read.
    """
    before = read(place, plan_id, number - 1, belongs) if number else None
    if belongs.tasks or before is None or before.is_last or is_cancelled(place, plan_id):
        raise NoPlanTaskError("there is no such plan task any more; plan the scan again")


def _part(content: bytes | None, number: int, most: int) -> PlanPage | None:
    if content is None:
        return None
    tasks = json.loads(content)
    part = tasks[number * most : (number + 1) * most]
    return PlanPage(part, (number + 1) * most >= len(tasks)) if part else None


def cancel(place: Published, plan_id: str) -> None:
    """Note that no one needs a plan any more. Its files stay for readers that began.

    Raises:
        ExecutionError: the place cannot be written.
    """
    place.write(f"{home(plan_id)}/{_CANCELLED}", b"")


def is_cancelled(place: Published, plan_id: str) -> bool:
    """Return whether no one needs a plan any more.

    Raises:
        ExecutionError: the place cannot be read.
    """
    return place.read(f"{home(plan_id)}/{_CANCELLED}") is not None


def ask(place: Published, plan_id: str) -> None:
    """Note for the scheduler that makes a plan that a client asks for its pages.

    Raises:
        ExecutionError: the place cannot be written.
    """
    place.write(f"{home(plan_id)}/{_ASKED}", str(now_ms()).encode())


def asked_ms(place: Published, plan_id: str) -> int:
    """Return when a client last asked another scheduler for pages of a plan.

    Raises:
        ExecutionError: the place cannot be read.
    """
    return int(place.read(f"{home(plan_id)}/{_ASKED}") or 0)
