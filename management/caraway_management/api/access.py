"""Identifies the sender of a request and its organization: dependencies of every route."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request
from sqlalchemy import bindparam, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.api import idempotency
from caraway_management.api.authenticating import authenticate
from caraway_management.credentials import authentication
from caraway_management.domain import identity, names, refusals
from caraway_management.domain.identity import Access, Credential, Organization
from caraway_management.domain.scopes import Role
from caraway_management.services import Services
from caraway_management.store.lookups import Lookup
from caraway_management.store.tables import Activity, Member, Org

MOST_ID = 2**63 - 1
_ORG = select(Org.id, Org.name, Org.plan, Org.deleted_at, Member.role).outerjoin(
    Member, (Member.org_id == Org.id) & (Member.user_id == bindparam("user_id"))
)
_ORG_BY_ID = Lookup(_ORG.where(Org.id == bindparam("id")))
_ORG_BY_NAME = Lookup(_ORG.where(Org.name_key == bindparam("name_key")))
INSTANCE = "caraway.instance"
"""Where a request has the parts of the instance that it came to."""


@dataclass(slots=True)
class Change:
    """A transaction that changes something, and the activity that it is recorded as."""

    session: AsyncSession
    now: datetime
    resource_kind: str = ""
    resource_id: str = ""
    resource_name: str = ""
    project_id: int | None = None
    org_id: int | None = None

    def on(
        self,
        kind: str,
        id_: object,
        name: str = "",
        *,
        project_id: int | None = None,
        org_id: int | None = None,
    ) -> None:
        """Name the resource that is changed, and its organization if the caller is in none."""
        self.org_id = org_id
        self.resource_kind, self.resource_id, self.resource_name = kind, str(id_), name
        self.project_id = id_ if kind == "project" and isinstance(id_, int) else project_id


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: a valid credential, in an organization if the route needs one."""

    services: Services
    request: Request
    credential: Credential
    access: Access | None

    @property
    def org(self) -> Organization:
        """The organization that the request is for."""
        return self.within.org

    @property
    def role(self) -> Role:
        """The role of the caller in the organization."""
        return self.within.role

    @property
    def actor(self) -> str:
        """The name that logs and deployments show."""
        return self.credential.name

    @property
    def within(self) -> Access:
        """The credential in the organization."""
        assert self.access is not None, "the route asked for no organization"
        return self.access

    def require_administrator(self) -> None:
        """Check that the owner of the credential administers the installation.

        Raises:
            RefusedError: he does not.
        """
        if not self.credential.is_administrator:
            raise refusals.forbidden("this is for administrators of the installation")

    @asynccontextmanager
    async def change(self) -> AsyncIterator[Change]:
        """Change something in one transaction, which also records the activity."""
        # The log is in the order of the changes.
        await self.services.database.later.written()
        async with self.services.database.change() as session:
            change = Change(session, self.services.now())
            yield change
            await idempotency.mark_changed(session, self.request)
            session.add(activity(self.request, change))
            self.request.state.is_recorded = True

    def record_later(self, kind: str, id_: object, name: str, project_id: int) -> None:
        """Record an activity that changes nothing in this database; no response waits for it."""
        now = self.services.now()

        async def write(session: AsyncSession) -> None:
            change = Change(session, now)
            change.on(kind, id_, name, project_id=project_id)
            session.add(activity(self.request, change))

        self.services.database.later.add(write)


def activity(request: Request, change: Change, status: int = 200) -> Activity:
    """Return the entry of the activity log for a request."""
    credential: Credential | None = getattr(request.state, "credential", None)
    access: Access | None = getattr(request.state, "access", None)
    route = request.scope.get("route")
    return Activity(
        org_id=access.org.id if access else change.org_id,
        project_id=change.project_id,
        at=change.now,
        actor_id=credential.user_id if credential else None,
        actor=credential.name if credential else "",
        credential_kind=credential.kind if credential else "",
        credential_id=credential.id if credential else "",
        action=getattr(route, "name", "") or request.method,
        resource_kind=change.resource_kind,
        resource_id=change.resource_id,
        resource_name=change.resource_name,
        outcome="succeeded" if status < 400 else "refused",
        status=status,
        code=getattr(request.state, "refusal", None),
        address=request.client.host if request.client else "",
        request_id=getattr(request.state, "request_id", ""),
    )


def services_of(request: Request) -> Services:
    """Return the parts of this instance."""
    services: Services = request.scope[INSTANCE].services
    return services


async def _find_services(request: Request) -> Services:
    return services_of(request)


GivenServices = Annotated[Services, Depends(_find_services)]
"""The parts of this instance, for a route without a caller."""
Find = Callable[..., Coroutine[Any, Any, Caller]]
_Assertion = Annotated[
    str | None,
    Header(
        alias="X-Org-Name",
        description="The handle of the organization. Omitted: that of the credential.",
    ),
]
OrgId = Annotated[
    str,
    Path(
        description="An id as listed by `GET /v1/orgs`.",
        json_schema_extra={"type": "integer", "minimum": 1},
    ),
]
ProjectId = Annotated[
    int, Path(alias="projectId", description="The id of a project.", ge=1, le=MOST_ID)
]
"""The parameter of paths such as `/v1/projects/{projectId}`."""


def needs(scope: str) -> object:
    """Return a dependency: a caller with a scope in the organization that the header names."""

    async def find(request: Request, x_org_name: _Assertion = None) -> Caller:
        return await _find_caller(request, scope, x_org_name)

    return _declared(find, scope, "header")


def needs_in_path(scope: str) -> object:
    """Return a dependency: a caller with a scope in the organization of the path."""

    async def find(request: Request, orgId: OrgId, x_org_name: _Assertion = None) -> Caller:
        return await _find_caller(request, scope, x_org_name, parse_org_id(orgId))

    return _declared(find, scope, "path")


def needs_credential(scope: str | None = None) -> object:
    """Return a dependency: a caller with a credential, in no organization."""

    async def find(request: Request) -> Caller:
        services = services_of(request)
        now = services.now()
        async with services.database.read() as session:
            credential = await authenticate(request, services, session, now)
        if scope is not None:
            identity.require_scope(credential, scope)
        authentication.note_use(services.database, credential, now)
        return Caller(services, request, credential, None)

    return _declared(find, scope, None)


def _declared(find: Find, scope: str | None, within: str | None) -> object:
    """Return a dependency that names its scope, for the table of routes in the docs."""
    find.needs_scope = scope  # type: ignore[attr-defined]
    find.needs_org = within  # type: ignore[attr-defined]
    return Depends(find)


async def _find_caller(
    request: Request, scope: str, asserted: str | None, org_id: int | None = None
) -> Caller:
    services = services_of(request)
    now = services.now()
    async with services.database.read() as session:
        credential = await authenticate(request, services, session, now)
        if asserted is not None:
            # Sent twice, it is a list, which names no organization.
            # Spaces around the value are not part of it; some servers leave them there.
            asserted = ", ".join(request.headers.getlist("x-org-name")).strip(" \t")
        handle = identity.check_assertion(asserted)
        identity.check_presence(credential, handle)
        org, role = await _find_org(session, credential, handle, org_id)
        if org is not None and org_id is not None and handle is not None:
            _check_same(org, handle)
        access = identity.check_access(credential, org, role, handle or str(org_id or ""))
    request.state.access = access
    access.require_scope(scope)
    authentication.note_use(services.database, credential, now)
    return Caller(services, request, credential, access)


async def find_access(session: AsyncSession, credential: Credential, handle: str) -> Access:
    """Return what a credential may do in another organization, by its handle.

    Raises:
        RefusedError: it is not one that the credential can reach.
    """
    checked = identity.check_assertion(handle)
    org, role = await _find_org(session, credential, checked, None)
    return identity.check_access(credential, org, role, handle)


async def _find_org(
    session: AsyncSession, credential: Credential, handle: str | None, org_id: int | None
) -> tuple[Organization | None, Role | None]:
    """Return the organization that a request is for, and the role of the caller there."""
    home = credential.home
    if home is not None and handle is None and org_id in (None, home.org.id):
        return home.org, home.role
    user_id = credential.user_id or 0
    if org_id is None and handle is not None:
        found = await _ORG_BY_NAME.one_or_none(session, user_id=user_id, name_key=names.key(handle))
    else:
        id_ = org_id or credential.org_id or credential.home_org_id or 0
        found = await _ORG_BY_ID.one_or_none(session, user_id=user_id, id=id_)
    if found is None:
        return None, None
    role = Role(found.role) if found.role is not None else None
    return Organization(found.id, found.name, found.plan, found.deleted_at), role


def parse_org_id(text: str) -> int:
    """Return the id of an organization in a path.

    Raises:
        RefusedError: it is none.
    """
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
    if not 1 <= number <= MOST_ID:
        raise refusals.invalid(
            "orgId must be an integer of at least 1, as listed by GET /v1/orgs", "invalid_org_id"
        )
    return number


def _check_same(org: Organization, handle: str) -> None:
    if names.key(org.name) != names.key(handle):
        raise refusals.invalid(
            "X-Org-Name names another organization than the path", "org_path_mismatch"
        )
