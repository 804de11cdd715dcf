"""Makes the first owner, organization and token of an installation, and further ones."""

from datetime import datetime

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import sessions
from caraway_management.credentials.oidc import VerifiedIdentity
from caraway_management.credentials.tokens import add_token as add_token
from caraway_management.domain import names, plans, refusals
from caraway_management.domain.plans import Limits
from caraway_management.domain.scopes import Role
from caraway_management.store.lookups import Lookup
from caraway_management.store.tables import Identity, Member, Org, PlanRow, Token, User

_MOST_NAMESAKES = 100
_LIMITS = Lookup(select(PlanRow.limits).where(PlanRow.name == bindparam("name")))


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
    (rows,) = await _LIMITS.rows(session, name=name)
    return plans.read_limits(rows.limits)


async def add_user(
    session: AsyncSession,
    now: datetime,
    username: str,
    *,
    email: str | None = None,
    password_hash: str | None = None,
    is_administrator: bool = False,
) -> User:
    """Add a user. `email` must be known to be the user's: identities are linked by it.

    Raises:
        RefusedError: there is one of this name.
    """
    key = names.key(names.check_user(username))
    taken = refusals.conflict(f"User '{username}' already exists")
    if await session.scalar(select(User.id).where(User.username_key == key)):
        raise taken
    user = User(
        username=username,
        username_key=key,
        email=names.key(email) if email else None,
        password_hash=password_hash,
        is_administrator=is_administrator,
        created_at=now,
    )
    session.add(user)
    try:
        await session.flush()
    except IntegrityError as exc:
        # Another request was faster.
        raise taken from exc
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


async def delete_user(session: AsyncSession, now: datetime, user: User) -> None:
    """Delete a user. The name stays taken; credentials of the user end at once.

    Raises:
        RefusedError: an organization would have no owner.
    """
    mine = select(Member.org_id).where(Member.user_id == user.id, Member.role == Role.OWNER)
    others = select(Member.org_id).where(Member.user_id != user.id, Member.role == Role.OWNER)
    orphan = await session.scalar(
        select(Org.name).where(Org.id.in_(mine), Org.id.not_in(others), Org.deleted_at.is_(None))
    )
    if orphan is not None:
        raise refusals.conflict(
            f"the user is the only owner of '{orphan}'; make somebody else its owner first"
        )
    user.deleted_at, user.password_hash = now, None
    await session.execute(delete(Member).where(Member.user_id == user.id))
    await session.execute(
        update(Token)
        .where(Token.user_id == user.id, Token.revoked_at.is_(None))
        .values(revoked_at=now)
    )
    await sessions.end_sessions(session, user.id)
    await session.flush()


async def user_of_identity(
    session: AsyncSession,
    now: datetime,
    identity: VerifiedIdentity,
    *,
    adds_users: bool,
    link_to: int | None = None,
) -> User:
    """Return the user with an identity of an OIDC issuer.

    An identity that is new belongs to the user who links it, else to the one user with its e-mail
    address, if the issuer has verified that, else to a user who is added.

    Raises:
        RefusedError: there is no such user, or the identity is that of another one.
    """
    known = await session.scalar(
        select(Identity).where(
            Identity.issuer == identity.issuer, Identity.subject == identity.subject
        )
    )
    if known is not None:
        if link_to not in (None, known.user_id):
            raise refusals.conflict("the identity belongs to another user")
        user = await session.get_one(User, known.user_id)
        if user.deleted_at is not None:
            raise refusals.forbidden("the user is deleted")
        return user
    user = await _owner_of_new(session, now, identity, adds_users, link_to)
    session.add(
        Identity(user_id=user.id, issuer=identity.issuer, subject=identity.subject, created_at=now)
    )
    await session.flush()
    return user


async def _owner_of_new(
    session: AsyncSession,
    now: datetime,
    identity: VerifiedIdentity,
    adds_users: bool,
    link_to: int | None,
) -> User:
    if link_to is not None:
        return await session.get_one(User, link_to)
    if identity.email is not None:
        query = select(User).where(User.email == identity.email, User.deleted_at.is_(None))
        owners = list(await session.scalars(query.limit(2)))
        if len(owners) == 1:
            return owners[0]
    if not adds_users:
        raise refusals.forbidden("no user has this identity; ask an administrator to add you")
    return await add_user(session, now, await _free_name(session, identity), email=identity.email)


async def _free_name(session: AsyncSession, identity: VerifiedIdentity) -> str:
    """Return a username for an identity: its own, with a number if that is taken."""
    wanted = names.as_username(identity.name)
    for number in range(1, _MOST_NAMESAKES):
        name = wanted if number == 1 else f"{wanted}-{number}"
        if not await session.scalar(select(User.id).where(User.username_key == names.key(name))):
            return name
    raise refusals.conflict(f"all names like '{wanted}' are taken; ask an administrator")
