"""The API keys of a project's runtime: one can be regenerated while another is used.

Two belong to the users of the project. The third is that of this service: what it passes on to the
runtime is not disturbed when users regenerate theirs, and no route shows it.
"""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import values
from caraway_management.credentials.values import Prefix
from caraway_management.sealing.sealer import Sealer
from caraway_management.store.tables import ApiKey

NUMBERS = (1, 2)
BOTH = 0
OF_SERVICE = 3
_ALL = (*NUMBERS, OF_SERVICE)


async def read(session: AsyncSession, sealer: Sealer, project_id: int) -> dict[int, str]:
    """Return all keys of a project by their numbers; none before the first `make`.

    Raises:
        SealedError: a value cannot be opened.
    """
    query = select(ApiKey).where(ApiKey.project_id == project_id).order_by(ApiKey.number)
    return {
        key.number: await sealer.open(session, key.sealed, _place(project_id, key.number))
        for key in await session.scalars(query)
    }


async def open_own(session: AsyncSession, sealer: Sealer, project_id: int, sealed: str) -> str:
    """Return the key of this service for a project, as it is stored.

    Raises:
        SealedError: it cannot be opened.
    """
    return await sealer.open(session, sealed, _place(project_id, OF_SERVICE))


async def make(
    session: AsyncSession, sealer: Sealer, now: datetime, project_id: int
) -> dict[int, str]:
    """Return the keys of a project; those that it does not have are made."""
    present = await read(session, sealer, project_id)
    await _renew(session, sealer, now, project_id, set(_ALL) - set(present))
    return await read(session, sealer, project_id)


async def regenerate(
    session: AsyncSession, sealer: Sealer, now: datetime, project_id: int, number: int
) -> dict[int, str]:
    """Give a key of the users a new value, or both; return all keys."""
    await make(session, sealer, now, project_id)
    await _renew(session, sealer, now, project_id, NUMBERS if number == BOTH else (number,))
    return await read(session, sealer, project_id)


async def _renew(
    session: AsyncSession, sealer: Sealer, now: datetime, project_id: int, numbers: Iterable[int]
) -> None:
    for number in sorted(numbers):
        value = values.make(Prefix.API_KEY)
        sealed = await sealer.seal(session, value, _place(project_id, number))
        key = await session.get(ApiKey, (project_id, number), with_for_update=True)
        if key is None:
            key = ApiKey(project_id=project_id, number=number)
            session.add(key)
        key.value_hash, key.sealed, key.created_at = values.digest(value), sealed, now
    await session.flush()


def _place(project_id: int, number: int) -> str:
    return f"api-key/{project_id}/{number}"
