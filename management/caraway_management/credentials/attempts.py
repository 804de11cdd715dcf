"""Counts attempts at what can be guessed, in the database: all instances count together."""

import hashlib
import math
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain.refusals import RefusedError
from caraway_management.store.tables import Attempts

WINDOW = timedelta(minutes=15)
_CLEANED_AT_ONCE = 100


def key(kind: str, *parts: str) -> str:
    """Return the key of a count. It has a bounded length, and does not show the parts."""
    text = "\0".join(parts)
    return f"{kind}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


async def count(session: AsyncSession, now: datetime, limits: Mapping[str, int]) -> None:
    """Count an attempt for each key. The caller commits before the attempt is made.

    Raises:
        RefusedError: 429, one of the keys had as many attempts as its limit in the window.
    """
    await _clean(session, now)
    keys = sorted(limits)
    for each in keys:
        await _add(session, now, each)
    query = select(Attempts).where(Attempts.key.in_(keys)).order_by(Attempts.key)
    rows = list(
        await session.scalars(query.with_for_update().execution_options(populate_existing=True))
    )
    for row in rows:
        if row.since + WINDOW <= now:
            row.count, row.since = 0, now
    over = [row.since + WINDOW for row in rows if row.count >= limits[row.key]]
    if over:
        wait_s = max(1, math.ceil((max(over) - now).total_seconds()))
        raise RefusedError(
            429,
            f"too many attempts; try again in {wait_s} s",
            "too_many_attempts",
            headers={"retry-after": str(wait_s)},
        )
    for row in rows:
        row.count += 1
    await session.flush()


async def forgive(session: AsyncSession, keys: Mapping[str, int]) -> None:
    """Take back an attempt that was right."""
    for each in sorted(keys):
        await session.execute(
            update(Attempts)
            .where(Attempts.key == each, Attempts.count > 0)
            .values(count=Attempts.count - 1)
            .execution_options(synchronize_session=False)
        )


async def _add(session: AsyncSession, now: datetime, key_: str) -> None:
    if await session.get(Attempts, key_) is not None:
        return
    try:
        async with session.begin_nested():
            session.add(Attempts(key=key_, count=0, since=now))
    except IntegrityError:
        # Another instance added it.
        return


async def _clean(session: AsyncSession, now: datetime) -> None:
    """Remove keys without attempts for long; those that others hold are left to them."""
    old = await session.scalars(
        select(Attempts.key)
        .where(Attempts.since <= now - 2 * WINDOW)
        .order_by(Attempts.key)
        .limit(_CLEANED_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    keys = list(old)
    if keys:
        await session.execute(delete(Attempts).where(Attempts.key.in_(keys)))
