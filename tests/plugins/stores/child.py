"""A process that uses a state store: `python -m tests.plugins.stores.child ROLE ADAPTER FOLDER`.

It prints the result of each write after the write has returned.
"""

import asyncio
import sys
import time
from pathlib import Path

from caraway_core.protocols.state import StateStore
from tests.plugins.stores import adapters

COUNTER = "counter"
LOG = "log"
WINS = 40


async def write(store: StateStore) -> None:
    """Write until this process is killed."""
    number = 0
    while True:
        key = f"written/{number:06d}"
        revision = await store.compare_and_set(key, str(number).encode(), expected=None)
        offset = await store.append(LOG, str(number).encode())
        print(number, revision, offset, flush=True)
        number += 1


async def contend(store: StateStore) -> None:
    """Increment the counter a number of times, concurrently with other processes."""
    wins = 0
    while wins < WINS:
        standing = await store.get(COUNTER)
        value = int(standing.value) + 1 if standing else 1
        expected = standing.revision if standing else None
        revision = await store.compare_and_set(COUNTER, str(value).encode(), expected=expected)
        if revision is not None:
            wins += 1
            print(expected, revision, await store.append(LOG, str(value).encode()), flush=True)


async def make(adapter: str, folder: Path) -> None:
    """Open and close a store for each line of input, in the folder with that name."""
    for line in sys.stdin:
        await adapters.make_state(adapter, folder / line.strip(), time.time).aclose()
        print("made", flush=True)


async def main(role: str, adapter: str, folder: str) -> None:
    print("ready", flush=True)
    if role == "make":
        return await make(adapter, Path(folder))
    sys.stdin.readline()
    store = adapters.make_state(adapter, Path(folder), time.time)
    await {"write": write, "contend": contend}[role](store)
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
