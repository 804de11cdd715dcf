"""The caller receives every exception of a call in a thread."""

import asyncio

import pytest

from caraway_scheduler.dispatch.fleets.waiting import in_thread
from tests.kit.panics import Panic


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (StopIteration("no future takes it"), RuntimeError),
        (KeyError("x"), KeyError),
        (SystemExit(3), SystemExit),
        (Panic("rust"), Panic),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_a_failure_in_a_thread_is_raised_where_it_is_awaited(
    raised: BaseException, seen: type[BaseException]
) -> None:
    def fails() -> None:
        raise raised

    async with asyncio.timeout(60):
        with pytest.raises(seen):
            await in_thread(fails, "fails")
