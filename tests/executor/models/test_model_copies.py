"""Models that an executor hosts: their owners, their limits, and the removal of unused copies."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from caraway_core.concurrency import tasks
from caraway_core.errors import ModelAwayError
from caraway_core.protocols.hosting import CopyOrder, CopyStatus
from caraway_executor.models.model_copies import FORGOTTEN_S, ModelCopies
from caraway_executor.resources.room import TaskMemory
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.hosted import Script, ScriptedSpec

KEY = "double-double"


def hosting(clock: Clock, memory: TaskMemory | None = None, gpus: int = 0) -> ModelCopies:
    return ModelCopies(2, gpus, memory or TaskMemory(1000), Path("/tmp"), clock)


def order(script: Script, holder: str = "s1", name: str = "double", **needs: Any) -> CopyOrder:
    return CopyOrder(holder, ScriptedSpec(script, name), **needs)


async def ready(copies: ModelCopies, wanted: CopyOrder) -> CopyStatus:
    async def look() -> CopyStatus | None:
        status = copies.order(wanted)
        return status if status.state == "ready" else None

    found = await eventually(look, "the copy is ready")
    assert found is not None
    return found


async def test_schedulers_share_a_copy_until_the_last_needs_it_no_more() -> None:
    script, copies = Script(), hosting(Clock())
    assert (await ready(copies, order(script))).facts == b"facts"
    await ready(copies, order(script, "s2"))
    copies.dismiss("s1", KEY)
    assert await copies.ask("call", KEY, b"?")
    copies.dismiss("s2", KEY)
    with pytest.raises(ModelAwayError, match="no copy"):
        await copies.ask("call", KEY, b"?")
    await copies.aclose()
    assert (script.built, script.closed) == (1, 1)


async def test_copies_and_calls_that_nobody_asks_for_are_forgotten() -> None:
    clock, script = Clock(), Script()
    script.may_go_on.clear()
    copies = hosting(clock)
    await ready(copies, order(script))
    page = await copies.ask("call", KEY, b"?")
    assert (page.parts, page.is_last, copies.active) == ((b"one",), False, 1)
    clock.now += FORGOTTEN_S + 1
    await copies.tend()
    assert (copies.active, script.left) == (0, 1)
    await copies.tend()
    assert copies.keys == ()
    with pytest.raises(ModelAwayError, match="no such call"):
        await copies.next("call")
    await copies.aclose()


async def test_what_models_take_together_is_limited() -> None:
    memory = TaskMemory(1000)
    copies = hosting(Clock(), memory, gpus=2)
    await ready(copies, order(Script(), memory_bytes=600, gpus=1))
    assert memory.taken_bytes == 600
    lacking: list[tuple[dict[str, Any], str]] = [
        ({"cores": 2}, "2 cores are needed, 1 of 2"),
        ({"memory_bytes": 500}, "of memory are needed"),
        ({"gpus": 2}, "2 GPUs are needed, 1 of 2"),
    ]
    for needs, words in lacking:
        status = copies.order(order(Script(), name="more", **needs))
        assert status.state == "refused"
        assert status.error is not None and words in status.error.message
    copies.dismiss("s1", KEY)
    assert memory.taken_bytes == 0
    await ready(copies, order(Script(), name="more", cores=2, memory_bytes=1000, gpus=2))
    await copies.aclose()


async def test_an_executor_that_drains_takes_no_new_copy_and_keeps_its_own() -> None:
    script, copies = Script(), hosting(Clock())
    await ready(copies, order(script))
    assert copies.order(order(script), is_draining=True).state == "ready"
    other = copies.order(order(Script(), name="other"), is_draining=True)
    assert other.state == "refused"
    await copies.aclose()


async def test_a_copy_whose_process_ended_is_loaded_before_the_next_call() -> None:
    script, copies = Script(dies=1), hosting(Clock())
    await ready(copies, order(script))
    script.may_load.clear()
    with pytest.raises(ModelAwayError, match="its process ended"):
        await copies.ask("call", KEY, b"?")
    assert copies.order(order(script)).state == "loading"
    assert copies.order(order(script)).progress == "loading 1 of 2"
    with pytest.raises(ModelAwayError, match="ready"):
        await copies.ask("call", KEY, b"?")
    script.may_load.set()
    await ready(copies, order(script))
    assert (await copies.ask("call", KEY, b"?")).parts
    await copies.aclose()


async def test_a_slow_reader_slows_the_model_and_every_part_arrives_once() -> None:
    many = tuple(str(number).encode() for number in range(1000))
    copies = hosting(Clock())
    await ready(copies, order(Script(parts=many)))
    page = await copies.ask("call", KEY, b"?")
    found = list(page.parts)
    while not page.is_last:
        page = await copies.next("call")
        assert len(page.parts) <= 256
        found += page.parts
    assert tuple(found) == many
    assert copies.answered == {"double": 1}
    await copies.aclose()


async def test_the_end_of_the_executor_ends_calls_with_an_error() -> None:
    script = Script()
    script.may_begin.clear()
    copies = hosting(Clock())
    await ready(copies, order(script))
    call = tasks.begin(copies.ask("call", KEY, b"?"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await copies.aclose()
    with pytest.raises(ModelAwayError, match="has ended the call"):
        await call
