"""Finds the runtime that requests of a project are passed to."""

from collections import OrderedDict
from dataclasses import dataclass

from sqlalchemy import bindparam, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import plans, refusals
from caraway_management.domain.plans import Limits
from caraway_management.passthrough import runtimes
from caraway_management.passthrough.runtimes import Runtime
from caraway_management.sealing.sealer import Sealer
from caraway_management.secrets import api_keys
from caraway_management.store.lookups import Lookup
from caraway_management.store.tables import ApiKey, PlanRow, Project

_MOST_KEYS = 10_000
_FOUND = Lookup(
    select(
        Project.name, Project.endpoint, Project.paused_at, ApiKey.sealed, PlanRow.limits
    )
    .select_from(Project)
    .join(PlanRow, PlanRow.name == bindparam("plan"))
    .outerjoin(
        ApiKey, (ApiKey.project_id == Project.id) & (ApiKey.number == api_keys.OF_SERVICE)
    )
    .where(
        Project.id == bindparam("id"),
        Project.org_id == bindparam("org_id"),
        Project.deleted_at.is_(None),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A runtime, and the limits of its project."""

    runtime: Runtime
    project: str
    limits: Limits


class RuntimeTargets:
    """Finds runtimes with one statement for each request, so that every change acts at once.

    Only opened keys are kept. A sealed value never means another key: it is encrypted with a
    nonce of its own, and a key that is regenerated is another sealed value.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[str, str] = OrderedDict()

    async def find(
        self, session: AsyncSession, sealer: Sealer, org_id: int, plan: str, project_id: int
    ) -> Found:
        """Return the runtime of a project of an organization.

        Raises:
            RefusedError: there is no such project, or it is paused or not deployed.
            SealedError: its key cannot be opened.
        """
        row = await _FOUND.one_or_none(session, id=project_id, org_id=org_id, plan=plan)
        if row is None:
            raise refusals.not_found("project", project_id)
        address = runtimes.address_of(row.endpoint, is_paused=row.paused_at is not None)
        if row.sealed is None:
            raise runtimes.not_deployed()
        key = await self._open(session, sealer, project_id, row.sealed)
        limits = plans.read_limits(row.limits)
        return Found(Runtime(project_id, address, key), row.name, limits)

    async def _open(
        self, session: AsyncSession, sealer: Sealer, project_id: int, sealed: str
    ) -> str:
        # The value of another project would not open in this place, so the place is in the key.
        place = f"{project_id}:{sealed}"
        if (key := self._keys.get(place)) is None:
            key = await api_keys.open_own(session, sealer, project_id, sealed)
        self._keys[place] = key
        self._keys.move_to_end(place)
        if len(self._keys) > _MOST_KEYS:
            self._keys.popitem(last=False)
        return key
