"""Leases: work that one of several instances does."""

from datetime import datetime, timedelta

from sqlalchemy import update
from sqlalchemy.engine import CursorResult
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.store.database import Database
from caraway_management.store.tables import Lease


async def take(database: Database, now: datetime, name: str, owner: str, lasts_s: float) -> bool:
    """Take or renew a lease; return whether this owner has it."""
    try:
        async with database.change() as session:
            if await renew(session, now, name, owner, lasts_s):
                return True
            if await session.get(Lease, name) is not None:
                return False
            session.add(Lease(name=name, owner=owner, until=now + timedelta(seconds=lasts_s)))
    except IntegrityError:
        # Another instance made the row at the same moment.
        return False
    return True


async def renew(
    session: AsyncSession, now: datetime, name: str, owner: str, lasts_s: float
) -> bool:
    """Renew a lease, or take one that has ended, in a transaction that depends on it."""
    result = await session.execute(
        update(Lease)
        .where(Lease.name == name, (Lease.owner == owner) | (Lease.until <= now))
        .values(owner=owner, until=now + timedelta(seconds=lasts_s))
    )
    assert isinstance(result, CursorResult)
    return result.rowcount > 0
