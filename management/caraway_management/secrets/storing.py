"""Stores secrets: sealed, by their names."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain import names, refusals, secret_rules
from caraway_management.domain.refusals import RefusedError
from caraway_management.sealing.sealer import Sealer
from caraway_management.store.tables import Secret, SecretLink
from caraway_management.store.tables.sealed import OF_ORGANIZATION


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of secrets: a project, or the organization itself."""

    org_id: int
    project_id: int = OF_ORGANIZATION


async def put(
    session: AsyncSession, sealer: Sealer, now: datetime, owner: Owner, name: str, value: str
) -> Secret:
    """Add a secret, or replace its value.

    Raises:
        RefusedError: the name or the value is wrong, or there are too many secrets.
    """
    name = names.check_secret(name)
    sealed = await sealer.seal(session, secret_rules.check_value(value), place(owner, name))
    secret = await _find(session, owner, name)
    if secret is None:
        secret = Secret(
            org_id=owner.org_id, project_id=owner.project_id, name=name, created_at=now
        )  # fmt: skip
        session.add(secret)
    secret.sealed, secret.updated_at = sealed, now
    await session.flush()
    number, size = (
        await session.execute(
            select(func.count(), func.sum(func.length(Secret.sealed))).where(*_of(owner))
        )
    ).one()
    secret_rules.check_room(number, size)
    return secret


async def get(session: AsyncSession, owner: Owner, name: str) -> Secret:
    """Return a secret.

    Raises:
        RefusedError: there is none of this name.
    """
    secret = await _find(session, owner, names.check_secret(name))
    if secret is None:
        raise missing(name)
    return secret


async def all_of(session: AsyncSession, owner: Owner) -> Sequence[Secret]:
    """Return the secrets of a project or of an organization itself, by name."""
    query = select(Secret).where(*_of(owner)).order_by(Secret.name)
    return (await session.scalars(query)).all()


async def remove(session: AsyncSession, secret: Secret) -> None:
    """Delete a secret, and its links."""
    await session.execute(delete(SecretLink).where(SecretLink.secret_id == secret.id))
    await session.delete(secret)
    await session.flush()


async def move(
    session: AsyncSession, sealer: Sealer, project_id: int, old_org: int, new_org: int
) -> None:
    """Take the secrets of a project to another organization. Its links stay behind."""
    old, new = Owner(old_org, project_id), Owner(new_org, project_id)
    await session.execute(delete(SecretLink).where(SecretLink.project_id == project_id))
    for secret in await all_of(session, old):
        value = await sealer.open(session, secret.sealed, place(old, secret.name))
        secret.sealed = await sealer.seal(session, value, place(new, secret.name))
        secret.org_id = new_org
    await session.flush()


def place(owner: Owner, name: str) -> str:
    """Return what a sealed value is bound to."""
    return f"secret/{owner.org_id}/{owner.project_id}/{name}"


def missing(name: str) -> RefusedError:
    """Return the refusal of a secret that does not exist."""
    return refusals.not_found("secret", name.upper())


async def _find(session: AsyncSession, owner: Owner, name: str) -> Secret | None:
    secret: Secret | None = await session.scalar(
        select(Secret).where(*_of(owner), Secret.name == name)
    )
    return secret


def _of(owner: Owner) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return Secret.org_id == owner.org_id, Secret.project_id == owner.project_id
