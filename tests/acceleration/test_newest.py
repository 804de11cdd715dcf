"""Which datasets a statement waits for, and which answers may be cached."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from caraway_acceleration.newest import NewestVersions
from caraway_core.errors import StateAwayError
from caraway_core.ids import CatalogVersion, TableName

ORDERS, PEOPLE, LOGGED = map(TableName, ("orders", "people", "logged"))


@dataclass
class FakeKept:
    """A dataset that notes the revision it is to reach."""

    reached: list[int] = field(default_factory=list)
    on_reach: Callable[[], object] = lambda: None

    async def reach(self, revision: int) -> None:
        self.reached.append(revision)
        self.on_reach()


class Site:
    """Two accelerated datasets, a view of one of them, and a dataset that takes writes."""

    def __init__(self) -> None:
        self.kept = {ORDERS: FakeKept(), PEOPLE: FakeKept()}
        self.asked: list[list[TableName]] = []
        self.revision = 7
        self.failure: Exception | None = None
        self.catalog = SimpleNamespace(
            views=self.views(recent="SELECT * FROM orders"),
            version=CatalogVersion(1),
            writable=frozenset({ORDERS, LOGGED}),
            datasets=dict.fromkeys((ORDERS, PEOPLE, LOGGED)),
        )
        catalog: Any = self.catalog
        kept: Any = self.kept
        self.texts: dict[TableName, str] = {}
        self.newest = NewestVersions(catalog, kept, self.read, self)

    @staticmethod
    def views(**texts: str) -> dict[TableName, Any]:
        return {
            TableName(name): SimpleNamespace(view=SimpleNamespace(sql=sql))
            for name, sql in texts.items()
        }

    async def read(self, names: Sequence[TableName]) -> Sequence[int]:
        self.asked.append(sorted(names))
        if self.failure is not None:
            raise self.failure
        return [self.revision for _ in names]


async def test_statement_waits_for_the_datasets_that_it_names() -> None:
    site = Site()
    await site.newest.caught_up("SELECT * FROM orders")
    assert site.asked == [[ORDERS]]
    assert (site.kept[ORDERS].reached, site.kept[PEOPLE].reached) == ([7], [])
    await site.newest.caught_up("SELECT 1")
    assert len(site.asked) == 1
    await site.newest.aclose()


async def test_view_stands_for_what_it_reads_and_new_ones_are_noticed() -> None:
    site = Site()
    assert site.newest.mentioned("SELECT * FROM recent") == {ORDERS}
    site.catalog.views = site.views(recent="SELECT * FROM people")
    assert site.newest.mentioned("SELECT * FROM recent") == {PEOPLE}


async def test_a_table_function_stands_for_what_its_body_reads() -> None:
    site = Site()
    calls, of = "SELECT * FROM orders_of(1)", TableName("of_people")
    assert site.newest.may_keep("SELECT * FROM of_people(1)")
    site.texts = {
        of: "SELECT * FROM people_of(1)",
        TableName("people_of"): "SELECT * FROM logged",
    }
    assert not site.newest.may_keep("SELECT * FROM of_people(1)")
    assert site.newest.mentioned("SELECT * FROM of_people(1)") == {PEOPLE}
    site.texts = {of: "SELECT 1 FROM recent"}
    assert site.newest.mentioned("SELECT * FROM of_people(1)") == {PEOPLE, ORDERS}
    assert site.newest.mentioned(calls) == {ORDERS}


async def test_datasets_come_and_go() -> None:
    site = Site()
    assert site.newest.mentioned("SELECT * FROM people") == {PEOPLE}
    del site.kept[PEOPLE]
    site.newest.changed()
    assert site.newest.mentioned("SELECT * FROM people") == frozenset()
    site.kept.clear()
    assert site.newest.mentioned("SELECT * FROM orders") == frozenset()


def test_answers_over_tables_that_others_write_unseen_are_not_kept() -> None:
    site = Site()
    assert site.newest.may_keep("SELECT * FROM orders JOIN people")
    assert not site.newest.may_keep("SELECT * FROM logged")
    site.catalog.writable = frozenset({ORDERS})
    assert not site.newest.may_keep("SELECT * FROM logged")
    site.catalog.version = CatalogVersion(2)
    assert site.newest.may_keep("SELECT * FROM logged")


async def test_successor_of_a_dataset_that_ends_is_waited_for() -> None:
    site = Site()
    successor = FakeKept()
    site.kept[ORDERS].on_reach = lambda: site.kept.update({ORDERS: successor})
    await site.newest.caught_up("SELECT * FROM orders")
    assert successor.reached == [7]
    site.kept[PEOPLE].on_reach = lambda: site.kept.pop(PEOPLE, None)
    await site.newest.caught_up("SELECT * FROM people")
    await site.newest.aclose()


async def test_dataset_without_a_version_is_not_waited_for() -> None:
    site = Site()
    site.revision = 0
    await site.newest.caught_up("SELECT * FROM orders")
    assert site.kept[ORDERS].reached == []
    await site.newest.aclose()


async def test_store_that_is_away_is_an_error() -> None:
    site = Site()
    site.failure = StateAwayError("it is away")
    with pytest.raises(StateAwayError):
        await site.newest.caught_up("SELECT * FROM orders")
    await site.newest.aclose()
