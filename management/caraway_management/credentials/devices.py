"""Sign-in of a command line: it waits with a code, while its user approves on the web page."""

import secrets
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import tokens, values
from caraway_management.credentials.tokens import NewToken
from caraway_management.credentials.values import Prefix
from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError
from caraway_management.store.tables import DeviceSignIn, User

LIFETIME = timedelta(minutes=15)
TOKEN_LIFETIME = timedelta(days=90)
POLL_S = 2
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_REMEMBERED_FOR = timedelta(days=1)


async def add_sign_in(
    session: AsyncSession, now: datetime, address: str
) -> tuple[DeviceSignIn, str]:
    """Add a sign-in that waits. Returns it with the code of the command line."""
    await session.execute(
        delete(DeviceSignIn).where(DeviceSignIn.expires_at <= now - _REMEMBERED_FOR)
    )
    code = values.make(Prefix.DEVICE_CODE)
    text = "".join(secrets.choice(_LETTERS) for _ in range(8))
    row = DeviceSignIn(
        code_hash=values.digest(code),
        user_code=f"{text[:4]}-{text[4:]}",
        address=address,
        state="pending",
        created_at=now,
        expires_at=now + LIFETIME,
    )
    session.add(row)
    await session.flush()
    return row, code


async def find_pending(session: AsyncSession, now: datetime, user_code: str) -> DeviceSignIn:
    """Return the sign-in that waits for a user, by the code that its command line shows.

    Raises:
        RefusedError: none waits with this code.
    """
    text = "".join(user_code.split()).upper()
    if len(text) == 8:
        text = f"{text[:4]}-{text[4:]}"
    row = await session.scalar(
        select(DeviceSignIn).where(DeviceSignIn.user_code == text).with_for_update()
    )
    if row is None or row.state != "pending" or row.expires_at <= now:
        raise refusals.not_found("a sign-in that waits with this code")
    return row


def decide(row: DeviceSignIn, user_id: int, *, is_approved: bool) -> None:
    """Approve or deny a sign-in."""
    row.state = "approved" if is_approved else "denied"
    row.user_id = user_id


async def redeem(session: AsyncSession, now: datetime, code: str) -> NewToken | str:
    """Return the token of an approved sign-in, once; else `pending` or `denied`.

    Raises:
        RefusedError: the code is unknown (404), or expired or used (410).
    """
    row = await session.scalar(
        select(DeviceSignIn).where(DeviceSignIn.code_hash == values.digest(code)).with_for_update()
    )
    if row is None:
        raise refusals.not_found("a sign-in with this code")
    if row.state == "redeemed" or row.expires_at <= now:
        raise RefusedError(410, "the code is expired or used; begin again", "code_expired")
    if row.state != "approved":
        return row.state
    user = await session.get_one(User, row.user_id)
    row.state = "redeemed"
    if user.deleted_at is not None:
        return "denied"
    return await tokens.add_token(
        session,
        now,
        user,
        "caraway login",
        expires_at=now + TOKEN_LIFETIME,
        prefix=Prefix.CLI_TOKEN,
    )
