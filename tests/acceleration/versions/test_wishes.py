"""Requested refreshes and settings outlive the scheduler that accepted them."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_acceleration.versions import wishes
from caraway_acceleration.versions.wishes import SETTINGS_TTL_S, ManifestNames, Wishes
from caraway_core.errors import UnavailableError
from caraway_core.ids import TableName
from caraway_core.protocols.state import StateEntry
from tests.kit.interleaving import SteppedLoop, SteppedStore, run

T = TableName("t")


def named(definition: str, sql: str, origin: str = "earlier") -> ManifestNames:
    return wishes.manifest({"definition": definition, "origin": origin}, sql)


MANIFEST = named("v2", "SELECT 1")


def play(
    work: Callable[[SteppedStore], Coroutine[Any, Any, None]],
    choose: Callable[[int], int] = lambda _: 0,
) -> None:
    async def with_store(loop: SteppedLoop) -> None:
        store = SteppedStore(loop)
        await work(store)
        store.close()

    run(with_store, choose, steps_take_time=False)


def test_refresh_stands_until_it_is_done() -> None:
    async def work(store: SteppedStore) -> None:
        one, two = Wishes(store, T), Wishes(store, T)
        assert await one.asked() is None
        ask = await one.ask({"refresh_sql": "SELECT 2"})
        assert await two.asked() == ask and await two.stands(ask.id)
        await two.done(ask.id)
        assert await one.asked() is None and not await one.stands(ask.id)
        await one.done(ask.id)

    play(work)


def test_later_refresh_takes_the_place_and_the_earlier_cannot_end_it() -> None:
    async def work(store: SteppedStore) -> None:
        one, two = Wishes(store, T), Wishes(store, T)
        first, second = await one.ask({}), await two.ask({"refresh_mode": "full"})
        assert first.id != second.id and not await one.stands(first.id)
        await one.done(first.id)
        assert await one.asked() == second

    play(work)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ({}, {}),
        ({"refresh_sql": None, "refresh_mode": "append"}, {"refresh_mode": "append"}),
        ({"refresh_jitter_max": "5s", "password": "x"}, {"refresh_jitter_max": "5s"}),
        ({"refresh_sql": "SELECT 'é\x00\ud7ff'"}, {"refresh_sql": "SELECT 'é\x00\ud7ff'"}),
    ],
)
def test_only_what_a_refresh_knows_is_written(
    body: dict[str, object], kept: dict[str, object]
) -> None:
    async def work(store: SteppedStore) -> None:
        ask = await Wishes(store, T).ask(body)
        assert ask.body == kept
        assert await Wishes(store, T).asked() == ask

    play(work)


def test_datasets_do_not_share_their_wishes() -> None:
    async def work(store: SteppedStore) -> None:
        names = [TableName(name) for name in ("t", "public.t", "t/x", "t%2Fx", "ü")]
        for name in names:
            await Wishes(store, name).ask({"refresh_sql": name})
        for name in names:
            ask = await Wishes(store, name).asked()
            assert ask is not None and ask.body == {"refresh_sql": name}
        entries = await store.scan(wishes.ASKED)
        assert {wishes.name_in(entry) for entry in entries} == set(names)

    play(work)


def test_statement_that_was_set_counts_with_its_manifest_only() -> None:
    async def work(store: SteppedStore) -> None:
        one = Wishes(store, T)
        assert await one.sql(MANIFEST) is None
        await one.set_sql("SELECT 2", MANIFEST)
        assert await Wishes(store, T).sql(MANIFEST) == "SELECT 2"
        assert await one.sql(named("v2", "SELECT 3")) is None
        assert await one.sql(named("other", "SELECT 1")) is None
        await one.set_sql("SELECT 4", MANIFEST)
        assert await one.sql(MANIFEST) == "SELECT 4"

    play(work)


def test_statement_that_was_set_is_read_by_the_release_before_and_from_it() -> None:
    async def work(store: SteppedStore) -> None:
        await Wishes(store, T).set_sql("SELECT 2", MANIFEST)
        [entry] = await store.scan(wishes.SETTINGS)
        # The release before compares this field.
        assert json.loads(entry.value)["manifest"] == "earlier\nSELECT 1"

        kept = json.dumps({"sql": "SELECT 5", "manifest": "earlier\nSELECT 1"}).encode()
        assert wishes.sql_of(replace(entry, value=kept), MANIFEST) == "SELECT 5"
        assert wishes.sql_of(replace(entry, value=kept), named("v2", "SELECT 1", "x")) is None

    play(work)


def test_settings_live_as_long_as_somebody_reads_them() -> None:
    async def work(store: SteppedStore) -> None:
        one = Wishes(store, T)
        await one.set_sql("SELECT 2", MANIFEST)
        for _ in range(5):
            await asyncio.sleep(SETTINGS_TTL_S * 0.8)
            assert await one.sql(MANIFEST) == "SELECT 2"
        await asyncio.sleep(SETTINGS_TTL_S + 1)
        assert await one.sql(MANIFEST) is None

    play(work)


@settings(max_examples=40, derandomize=True)
@given(st.lists(st.integers(0, 4), max_size=120))
def test_of_refreshes_asked_at_once_exactly_one_stands(choices: list[int]) -> None:
    async def work(store: SteppedStore) -> None:
        asks = await asyncio.gather(*(Wishes(store, T).ask({}) for _ in range(3)))
        standing = await Wishes(store, T).asked()
        assert standing is not None
        assert [each.id for each in asks].count(standing.id) == 1
        others = [each.id for each in asks if each.id != standing.id]
        await asyncio.gather(*(Wishes(store, T).done(each) for each in others))
        assert await Wishes(store, T).asked() == standing

    numbers = iter(choices)
    play(work, lambda count: min(next(numbers, 0), count - 1))


def test_endless_contention_is_an_error_that_can_be_tried_again() -> None:
    async def work(store: SteppedStore) -> None:
        async def beaten(*_: object, **__: object) -> int | None:
            return None

        store.compare_and_set = beaten  # type: ignore[method-assign]
        with pytest.raises(UnavailableError):
            await Wishes(store, T).ask({})

    play(work)


def test_settings_of_another_manifest_are_no_statement() -> None:
    entry = StateEntry("k", b'{"sql":"SELECT 2","manifest":"m"}', 1)
    assert wishes.sql_of(entry, ManifestNames("later", "m")) == "SELECT 2"
    assert wishes.sql_of(entry, ManifestNames("later", "n")) is None
