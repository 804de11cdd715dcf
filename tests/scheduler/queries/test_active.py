import asyncio

import pytest

from caraway_core.errors import QueryCancelledError, QueryTimeoutError
from caraway_core.ids import PUBLIC, PrincipalId, new_query_id
from caraway_scheduler.queries.active import ActiveQueries, ActiveQuery, preview
from tests.kit.turns import turn


def query(principal: PrincipalId = PUBLIC) -> ActiveQuery:
    return ActiveQuery(new_query_id(), "http", "SELECT 1", principal, 0, timeout_s=2)


async def test_stop_ends_a_wait_with_its_reason() -> None:
    running = query()

    async def wait() -> None:
        with running.step():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await turn()
    running.stop("timeout")
    with pytest.raises(QueryTimeoutError, match="within 2 s"):
        await task


async def test_stop_between_steps_releases_and_ends_the_next_step() -> None:
    released = []
    running = query()
    running.release = lambda: released.append(True)
    running.stop("cancelled")
    running.stop("timeout")
    assert released == [True]
    with pytest.raises(QueryCancelledError), running.step():
        pytest.fail("the step must not begin")


async def test_cancellation_of_the_task_itself_stays_a_cancellation() -> None:
    running = query()

    async def wait() -> None:
        with running.step():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await turn()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_queries_are_seen_by_their_principal_only() -> None:
    active = ActiveQueries()
    mine, other = query(), query(PrincipalId("other"))
    active.add(mine)
    active.add(other)
    assert active.queries_of(PUBLIC) == [mine]
    assert active.find(other.query_id, PUBLIC) is None
    assert active.find(mine.query_id, PUBLIC) is mine
    active.remove(mine)
    active.remove(other)
    await asyncio.wait_for(active.wait_idle(), 60)


def test_preview_is_one_line_of_at_most_a_hundred_characters() -> None:
    assert preview("SELECT\n  1") == "SELECT 1"
    assert len(preview("x" * 500)) == 100
    assert preview("x" * 500).endswith("...")
