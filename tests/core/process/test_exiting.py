import asyncio
import subprocess
import sys

import pytest

from caraway_core.process import exiting
from caraway_core.settings import Address

HEAD = Address("head.test", 6390)
STUCK = """
import threading
from caraway_core.process import exiting
threading.Thread(target=threading.Event().wait).start()
exiting.bound(0.1, code=7)
"""


def test_a_process_whose_threads_hang_ends_in_time() -> None:
    found = subprocess.run([sys.executable, "-c", STUCK], timeout=60, check=False)

    assert found.returncode == 7


def test_a_process_whose_head_goes_ends_sooner() -> None:
    script = """
import socket, sys, threading
from caraway_core.process import exiting
from caraway_core.settings import Address
threading.Thread(target=threading.Event().wait).start()
head = socket.create_server(("127.0.0.1", 0))
address = Address("127.0.0.1", head.getsockname()[1])
exiting.bound(600, address, code=7, gone_s=0.6, last_s=0.1)
head.accept()
head.close()
"""
    found = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)

    assert found.returncode == 7


async def test_work_is_not_waited_for_once_the_head_is_gone() -> None:
    never = asyncio.Event()

    is_done = await exiting.unless_gone(never.wait(), HEAD, lambda _: False, for_s=0.0)

    assert not is_done


async def test_work_is_waited_for_while_the_head_answers() -> None:
    asked: list[Address] = []
    done = asyncio.Event()

    def answers(address: Address) -> bool:
        asked.append(address)
        loop.call_soon_threadsafe(done.set)
        return True

    loop = asyncio.get_running_loop()

    assert await exiting.unless_gone(done.wait(), HEAD, answers, for_s=60)
    assert asked == [HEAD]


async def test_what_the_work_raises_is_raised() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await exiting.unless_gone(work(), HEAD, lambda _: True)
