"""Links secrets of an organization to its projects, and finds what a runtime gets."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.engine import CursorResult
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import names
from caraway_management.sealing.sealer import Sealer
from caraway_management.secrets import storing
from caraway_management.secrets.storing import Owner
from caraway_management.store.tables import Secret, SecretLink
from caraway_management.store.tables.sealed import OF_ORGANIZATION


async def link(session: AsyncSession, now: datetime, owner: Owner, name: str) -> Secret:
    """Link a secret of the organization to a project, if it is not linked.

    Raises:
        RefusedError: the organization has no such secret.
    """
    secret = await storing.get(session, Owner(owner.org_id), name)
    if await session.get(SecretLink, (owner.project_id, secret.id)) is None:
        session.add(SecretLink(project_id=owner.project_id, secret_id=secret.id, created_at=now))
        await session.flush()
    return secret


async def unlink(session: AsyncSession, owner: Owner, name: str) -> None:
    """Remove the link of a secret to a project. The secret stays.

    Raises:
        RefusedError: it is not linked.
    """
    of_org = select(Secret.id).where(
        Secret.org_id == owner.org_id,
        Secret.project_id == OF_ORGANIZATION,
        Secret.name == names.check_secret(name),
    )
    removed = await session.execute(
        delete(SecretLink).where(
            SecretLink.project_id == owner.project_id, SecretLink.secret_id.in_(of_org)
        )
    )
    assert isinstance(removed, CursorResult)
    if not removed.rowcount:
        raise storing.missing(name)


async def linked_to(session: AsyncSession, owner: Owner) -> Sequence[Secret]:
    """Return the secrets of the organization that a project uses, by name."""
    query = (
        select(Secret)
        .join(SecretLink, SecretLink.secret_id == Secret.id)
        .where(SecretLink.project_id == owner.project_id, Secret.org_id == owner.org_id)
        .order_by(Secret.name)
    )
    return (await session.scalars(query)).all()


async def projects_of(session: AsyncSession, secret: Secret) -> Sequence[int]:
    """Return the projects that a secret reaches."""
    if secret.project_id != OF_ORGANIZATION:
        return [secret.project_id]
    query = select(SecretLink.project_id).where(SecretLink.secret_id == secret.id)
    return (await session.scalars(query.order_by(SecretLink.project_id))).all()


async def in_force(session: AsyncSession, owner: Owner) -> list[Secret]:
    """Return the secrets that the runtime of a project gets, by name; its own win."""
    found = {secret.name: secret for secret in await linked_to(session, owner)}
    found |= {secret.name: secret for secret in await storing.all_of(session, owner)}
    return [found[name] for name in sorted(found)]


async def values_in_force(session: AsyncSession, sealer: Sealer, owner: Owner) -> dict[str, str]:
    """Return the values of the secrets that the runtime of a project gets, by name.

    Raises:
        SealedError: a value cannot be opened.
    """
    return {
        secret.name: await sealer.open(
            session,
            secret.sealed,
            storing.place(Owner(secret.org_id, secret.project_id), secret.name),
        )
        for secret in await in_force(session, owner)
    }
