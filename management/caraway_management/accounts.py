"""Makes the first owner, organization and token of an installation, and further ones."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import values
from caraway_management.credentials.values import Prefix
from caraway_management.domain import names, plans, refusals
from caraway_management.domain.plans import Limits
from caraway_management.domain.scopes import EVERYTHING, Role
from caraway_management.store.tables import Member, Org, PlanRow, Token, User


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token, with the value that is shown once."""

    row: Token
    value: str


async def add_plans(session: AsyncSession, now: datetime) -> None:
    """Add the plans of a new installation, unless it has some."""
    if not await session.scalar(select(func.count()).select_from(PlanRow)):
        session.add_all(
            PlanRow(name=name, limits=limits.as_json(), updated_at=now)
            for name, limits in plans.PLANS.items()
        )
        await session.flush()


async def read_plan(session: AsyncSession, name: str) -> Limits:
    """Return the limits of a plan; organizations refer to plans that exist."""
    plan = await session.get_one(PlanRow, name)
    return plans.read_limits(plan.limits)


async def add_user(
    session: AsyncSession, now: datetime, username: str, *, is_administrator: bool = False
) -> User:
    """Add a user.

    Raises:
        RefusedError: there is one of this name.
    """
    key = names.key(names.check_user(username))
    if await session.scalar(select(User.id).where(User.username_key == key)):
        raise refusals.conflict(f"User '{username}' already exists")
    user = User(
        username=username, username_key=key, is_administrator=is_administrator, created_at=now
    )
    session.add(user)
    await session.flush()
    return user


async def add_organization(
    session: AsyncSession, now: datetime, name: str, owner: User, plan: str = plans.DEFAULT_PLAN
) -> Org:
    """Add an organization with its first owner.

    Raises:
        RefusedError: there is one of this name, or there was.
    """
    key = names.key(names.check_handle(name))
    if await session.scalar(select(Org.id).where(Org.name_key == key)):
        raise refusals.conflict(f"Organization '{name}' already exists")
    org = Org(name=name, name_key=key, plan=plan, created_at=now)
    session.add(org)
    await session.flush()
    session.add(Member(org_id=org.id, user_id=owner.id, role=Role.OWNER, created_at=now))
    if owner.home_org_id is None:
        owner.home_org_id = org.id
    await session.flush()
    return org


async def add_token(
    session: AsyncSession,
    now: datetime,
    user: User,
    name: str,
    *,
    scopes: tuple[str, ...] = (EVERYTHING,),
    org_id: int | None = None,
    lifetime: timedelta | None = None,
    prefix: Prefix = Prefix.PERSONAL_TOKEN,
) -> NewToken:
    """Add a personal access token."""
    value = values.make(prefix)
    row = Token(
        user_id=user.id,
        org_id=org_id,
        name=names.check_text(name, "name"),
        kind="cli" if prefix is Prefix.CLI_TOKEN else "personal",
        hint=values.hint(value),
        value_hash=values.digest(value),
        scopes=list(scopes),
        created_at=now,
        expires_at=now + lifetime if lifetime else None,
    )
    session.add(row)
    await session.flush()
    return NewToken(row, value)
