import asyncio
import threading

import pytest
from argon2 import PasswordHasher

from caraway_core.errors import UnavailableError
from caraway_management.credentials.passwords import Passwords, default_hasher
from tests.kit.management import FAST_HASHER


async def test_a_password_verifies_in_every_way_of_writing_it() -> None:
    passwords = Passwords(FAST_HASHER)
    stored = await passwords.hash("caf\u00e9 au lait!")
    assert await passwords.verify(stored, "cafe\u0301 au lait!")
    assert not await passwords.verify(stored, "cafe au lait!")
    assert not await passwords.verify(stored, "\ud800")
    assert not await passwords.verify("no hash", "cafe au lait!")


async def test_no_password_is_never_right() -> None:
    passwords = Passwords(FAST_HASHER)
    assert not await passwords.verify(None, "")


async def test_too_many_passwords_at_once_are_refused() -> None:
    passwords = Passwords(FAST_HASHER, most_waiting=3)
    await passwords.verify(None, "first")
    release, running = threading.Event(), threading.Semaphore(0)

    def wait() -> int:
        running.release()
        release.wait(30)
        return threading.active_count()

    tasks = [asyncio.create_task(passwords._run(wait)) for _ in range(3)]
    await asyncio.to_thread(lambda: [running.acquire(timeout=30) for _ in range(2)])
    # Two run, and the third waits for one of their threads.
    assert not running.acquire(blocking=False)
    with pytest.raises(UnavailableError):
        await passwords.hash("one too many")
    release.set()
    await asyncio.gather(*tasks)
    assert await passwords.hash("again")


async def test_hashes_of_other_parameters_are_renewed() -> None:
    stored = await Passwords(FAST_HASHER).hash("correct horse battery")
    assert Passwords(default_hasher()).needs_rehash(stored)
    assert not Passwords(FAST_HASHER).needs_rehash(stored)
    assert isinstance(default_hasher(), PasswordHasher)
    assert default_hasher().memory_cost >= 19 * 1024
