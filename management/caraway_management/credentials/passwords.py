"""Hashes and verifies passwords in a few threads: each takes memory and time on purpose."""

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from caraway_core.errors import UnavailableError
from caraway_management.domain import passwords

_Result = TypeVar("_Result")
_THREADS = 2
_MOST_WAITING = 64
_RETRY_AFTER_S = 5


def default_hasher() -> PasswordHasher:
    """Return the parameters of argon2id: 46 MiB, two passes, one lane."""
    return PasswordHasher(time_cost=2, memory_cost=46 * 1024, parallelism=1)


class Passwords:
    """Hashes passwords, at most two at once; further requests wait, and too many are refused."""

    def __init__(
        self, hasher: PasswordHasher | None = None, most_waiting: int = _MOST_WAITING
    ) -> None:
        self._hasher = hasher or default_hasher()
        self._threads = ThreadPoolExecutor(_THREADS, "passwords")
        self._most_waiting = most_waiting
        self._waiting = 0
        self._nobodys: Future[str] | None = None

    async def hash(self, password: str) -> str:
        """Return the hash of a password.

        Raises:
            UnavailableError: too many passwords wait for a thread.
        """
        return await self._run(lambda: self._hasher.hash(password))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Return whether the hash is that of the password; None, for no password, is never.

        The work is the same for a user who does not exist or has no password, so that the time
        of an answer does not tell who exists.

        Raises:
            UnavailableError: too many passwords wait for a thread.
        """
        if self._nobodys is None:
            self._nobodys = self._threads.submit(self._hasher.hash, secrets.token_urlsafe())
        nobodys = await asyncio.wrap_future(self._nobodys)
        expected = nobodys if stored is None else stored
        normalized = passwords.normalize(password)
        is_right = await self._run(lambda: self._verify(expected, normalized))
        return is_right and stored is not None

    def needs_rehash(self, stored: str) -> bool:
        """Return whether a hash was made with other parameters than those of now."""
        return self._hasher.check_needs_rehash(stored)

    def _verify(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError, UnicodeEncodeError):
            return False

    async def _run(self, work: Callable[[], _Result]) -> _Result:
        if self._waiting >= self._most_waiting:
            raise UnavailableError("too many sign-ins at once; try again", _RETRY_AFTER_S)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._waiting -= 1
