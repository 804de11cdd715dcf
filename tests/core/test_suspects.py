"""Statements that ran while an engine ended: refusals, their duration, and turns."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import StatementRefusedError
from caraway_core.suspects import REFUSED_S, End, Suspect, Suspects, SuspectTurns, key
from tests.kit.clocks import Clock

MEMORY = End("memory", "it used 1.4 GiB where 1 GiB is allowed")
CRASH = End("crash")


def found(suspects: Suspects, name: str) -> Suspect:
    suspect = suspects.find(name)
    assert suspect is not None
    return suspect


def test_one_end_makes_a_suspect_that_may_run_again() -> None:
    suspects = Suspects(Clock())
    suspects.ended(["a"], MEMORY)
    suspects.check("a")
    assert found(suspects, "a").ends == 1
    assert suspects.find("b") is None


def test_what_ends_the_engine_again_alone_is_refused_with_the_cause() -> None:
    suspects = Suspects(Clock(now=0))
    suspects.ended(["a", "b"], CRASH)
    suspects.ended(["a"], MEMORY)
    told = (
        r"refused until 00:05:00 UTC: it ended the engine twice: memory "
        r"\(it used 1\.4 GiB where 1 GiB is allowed\); .*`runtime\.query\.memory_limit`"
    )
    with pytest.raises(StatementRefusedError, match=told):
        suspects.check("a")
    suspects.check("b")
    assert suspects.refusals == {"memory": 1}
    assert suspects.ends == {"crash": 1, "memory": 1}


def test_a_statement_beside_others_is_refused_only_at_the_third_end() -> None:
    suspects = Suspects(Clock())
    suspects.ended(["long", "b"], MEMORY)
    suspects.ended(["long", "c"], MEMORY)
    suspects.check("long")
    suspects.ended(["long", "d"], MEMORY)
    with pytest.raises(StatementRefusedError, match="three times"):
        suspects.check("long")


def test_many_of_one_statement_are_alone_together() -> None:
    suspects = Suspects(Clock())
    for _ in range(2):
        suspects.ended(["a", "a", "a"], MEMORY)
    with pytest.raises(StatementRefusedError):
        suspects.check("a")


def test_what_was_proven_stays_proven_beside_others() -> None:
    suspects = Suspects(Clock())
    suspects.ended(["a"], MEMORY)
    suspects.ended(["a"], MEMORY)
    suspects.ended(["a", "b"], MEMORY)
    with pytest.raises(StatementRefusedError):
        suspects.check("a")


def test_a_refusal_ends_with_its_time() -> None:
    clock = Clock()
    suspects = Suspects(clock)
    suspects.ended(["a"], CRASH)
    suspects.ended(["a"], CRASH)
    clock.now += REFUSED_S
    suspects.check("a")
    assert len(suspects) == 0


def test_a_statement_that_came_to_its_end_is_no_suspect() -> None:
    suspects = Suspects(Clock())
    suspects.ended(["a", "b"], CRASH)
    suspects.cleared("a")
    suspects.ended(["a"], CRASH)
    suspects.check("a")


def test_the_oldest_are_forgotten_where_there_are_too_many() -> None:
    clock = Clock()
    suspects = Suspects(clock, most=2)
    for name in ("a", "b", "c"):
        clock.now += 1
        suspects.ended([name], CRASH)
    assert suspects.find("a") is None
    assert len(suspects) == 2


def test_other_processes_learn_what_one_has_found() -> None:
    here, there = Suspects(Clock()), Suspects(Clock())
    here.ended(["a"], MEMORY)
    there.ended(["a"], CRASH)
    (noted,) = here.ended(["a"], MEMORY)
    there.learn([Suspect.decode(noted.encode())])
    with pytest.raises(StatementRefusedError, match="twice: memory"):
        there.check("a")
    there.learn([Suspect("a", 1, CRASH, was_alone=True, seen_s=0.0)])
    assert found(there, "a") == noted


def test_keys_tell_texts_and_parameters_apart() -> None:
    keys = [
        key("SELECT $a", {"a": 1}),
        key("SELECT $a", {"a": "1"}),
        key("SELECT $a", {"b": 1}),
        key("SELECT $a"),
        key("SELECT \udc80"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(" SELECT 1\n") == key("SELECT 1", {})


@given(st.lists(st.sets(st.sampled_from("abc"), min_size=1), max_size=8))
def test_nobody_is_refused_for_less_than_two_ends(ends: list[set[str]]) -> None:
    suspects = Suspects(Clock())
    for running in ends:
        suspects.ended(running, CRASH)
    for name in "abc":
        seen = sum(name in running for running in ends)
        suspect = suspects.find(name)
        assert (suspect.ends if suspect else 0) == seen
        if seen < 2:
            suspects.check(name)
        elif suspect is not None and seen > 2:
            assert suspect.is_refused


async def test_suspects_take_turns_and_others_do_not_wait() -> None:
    suspects = Suspects(Clock())
    turns = SuspectTurns(suspects)
    suspects.ended(["a", "b"], CRASH)
    over = await turns.await_turn("a")
    waiting = asyncio.create_task(turns.await_turn("b"))
    (await turns.await_turn("c"))()
    assert not waiting.done()
    over()
    over()
    (await waiting)()


async def test_a_statement_that_is_refused_while_it_waits_gets_no_turn() -> None:
    suspects = Suspects(Clock())
    turns = SuspectTurns(suspects)
    suspects.ended(["a", "b"], CRASH)
    over = await turns.await_turn("a")
    again, other = (
        asyncio.create_task(turns.await_turn("a")),
        asyncio.create_task(turns.await_turn("b")),
    )
    await asyncio.sleep(0)
    suspects.ended(["a"], CRASH)
    over()
    with pytest.raises(StatementRefusedError):
        await again
    (await other)()


async def test_a_turn_passes_on_when_its_statement_runs_for_long() -> None:
    suspects = Suspects(Clock())
    turns = SuspectTurns(suspects, longest_s=0.01)
    suspects.ended(["a", "b"], CRASH)
    first = await turns.await_turn("a")
    second = await turns.await_turn("b")
    first()
    assert turns._turn.locked()
    second()
    assert not turns._turn.locked()


async def test_a_cancelled_wait_leaves_the_turn_to_others() -> None:
    suspects = Suspects(Clock())
    turns = SuspectTurns(suspects)
    suspects.ended(["a", "b", "c"], CRASH)
    over = await turns.await_turn("a")
    waiting = asyncio.create_task(turns.await_turn("b"))
    await asyncio.sleep(0)
    waiting.cancel()
    over()
    (await turns.await_turn("c"))()
