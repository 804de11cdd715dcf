"""One installation at a time, under numbers that are never given twice."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from caraway_core.ids import TableName
from caraway_core.statements import CatalogSnapshot
from caraway_scheduler.catalog.installing import Installer

T, U = TableName("t"), TableName("u")


class Spec:
    """A table that equals every other one, as two loads of one file may."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec)

    __hash__ = None  # type: ignore[assignment]


class Dispatch:
    """Takes catalogs when the test lets it."""

    def __init__(self) -> None:
        self.snapshots: list[CatalogSnapshot] = []
        self.failures: Mapping[TableName, str] = {}
        self.raised: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        self.snapshots.append(snapshot)
        await self.gate.wait()
        if self.raised is not None:
            raise self.raised
        return self.failures

    def views(self) -> Mapping[TableName, Any]:
        return {}


def made() -> tuple[Installer, Dispatch]:
    dispatch: Any = Dispatch()
    return Installer(dispatch, {}), dispatch


async def test_tables_that_are_the_very_same_are_installed_once() -> None:
    installer, dispatch = made()
    tables: Any = {T: Spec()}
    assert await installer.install(lambda: tables)
    assert not await installer.install(lambda: dict(tables))
    assert installer.version == 1 and len(dispatch.snapshots) == 1


async def test_empty_catalog_is_installed_too() -> None:
    installer, _ = made()
    assert await installer.install(dict)
    assert installer.version == 1


@pytest.mark.parametrize("change", ["loaded again", "more", "fewer"])
async def test_any_other_tables_are_a_new_version(change: str) -> None:
    installer, dispatch = made()
    tables: Any = {T: Spec(), U: Spec()}
    await installer.install(lambda: tables)
    others = {"loaded again": {**tables, T: Spec()}, "more": {**tables, TableName("v"): Spec()},
              "fewer": {T: tables[T]}}[change]  # fmt: skip
    assert await installer.install(lambda: others)
    assert installer.version == 2 and installer.installed is others
    assert [snapshot.version for snapshot in dispatch.snapshots] == [1, 2]


async def test_number_of_a_failed_installation_is_not_used_again() -> None:
    installer, dispatch = made()
    before: Any = {T: Spec()}
    await installer.install(lambda: before)
    dispatch.raised = OSError("executors are gone")
    with pytest.raises(OSError, match="gone"):
        await installer.install(dict)
    assert (installer.version, installer.installed) == (1, before), "statements see those before"
    dispatch.raised = None
    await installer.install(dict)
    assert installer.version == 3


async def test_those_who_wait_ask_for_the_tables_of_the_moment_and_may_have_nothing_to_do() -> None:
    installer, dispatch = made()
    dispatch.gate.clear()
    tables: list[Any] = [{T: Spec()}]
    installs = [asyncio.ensure_future(installer.install(lambda: tables[-1])) for _ in range(4)]
    await asyncio.sleep(0)
    tables.append({U: Spec()})
    dispatch.gate.set()
    assert await asyncio.gather(*installs) == [True, True, False, False]
    assert [set(snapshot.tables) for snapshot in dispatch.snapshots] == [{T}, {U}]


async def test_cancelled_installation_lets_the_next_one_in() -> None:
    installer, dispatch = made()
    dispatch.gate.clear()
    first = asyncio.ensure_future(installer.install(dict))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait((first,))
    dispatch.gate.set()
    assert await installer.install(dict) and installer.version == 2


async def test_failures_of_tables_are_kept_and_added_to() -> None:
    installer, dispatch = made()
    dispatch.failures = {T: "no columns"}
    await installer.install(dict)
    installer.failed_later({U: "not on e2"})
    assert installer.planned.failed == {T: "no columns", U: "not on e2"}
    dispatch.failures = {}
    tables: Any = {T: Spec()}
    await installer.install(lambda: tables)
    assert installer.planned.failed == {}
