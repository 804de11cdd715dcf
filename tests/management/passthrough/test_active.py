"""Active queries of organizations: the bound, and when runtimes are asked."""

from dataclasses import dataclass, field, replace

import pytest

from caraway_management.domain import plans
from caraway_management.domain.plans import UNLIMITED
from caraway_management.domain.refusals import RefusedError
from caraway_management.passthrough import active
from caraway_management.passthrough.active import ActiveQueries


@dataclass
class Site:
    """Queries that are active at the runtimes of projects, and which of them were asked."""

    running: dict[int, int] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    queries: ActiveQueries = field(default_factory=ActiveQueries)

    async def count(self, project_id: int) -> int:
        self.asked.append(project_id)
        return self.running.get(project_id, 0)

    async def admit(self, org: int = 1, project: int = 1, most: int = 2) -> None:
        await self.queries.admit(org, project, most, self.count)
        self.running[project] = self.running.get(project, 0) + 1


async def test_runtimes_are_asked_only_at_the_bound() -> None:
    site = Site()
    await site.admit()
    await site.admit()
    assert site.asked == []
    with pytest.raises(RefusedError, match="has 2 active queries") as caught:
        await site.admit()
    assert site.asked == [1]
    assert (caught.value.status, caught.value.code) == (429, "too_many_queries")
    assert caught.value.headers == {"retry-after": "5"}


async def test_queries_that_are_done_make_room() -> None:
    site = Site()
    await site.admit()
    await site.admit(project=2)
    site.running[1] = 0
    await site.admit(project=3)
    assert site.asked == [1, 2]
    with pytest.raises(RefusedError):
        await site.admit()
    assert site.asked == [1, 2, 2, 3]


async def test_organizations_do_not_count_for_each_other() -> None:
    site = Site()
    for _ in range(2):
        await site.admit(org=1)
    await site.admit(org=2, project=9)
    assert site.asked == []


async def test_queries_that_were_not_accepted_are_taken_back() -> None:
    site = Site()
    await site.admit()
    await site.admit()
    site.queries.withdraw(1, 1)
    await site.admit()
    assert site.asked == []
    for org, project in ((1, 7), (7, 1)):
        site.queries.withdraw(org, project)
    with pytest.raises(RefusedError):
        await site.admit()


async def test_a_bound_of_zero_admits_none() -> None:
    with pytest.raises(RefusedError):
        await Site().admit(most=0)


async def test_organizations_that_are_counted_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active, "_MOST_ORGANIZATIONS", 2)
    site = Site()
    for org in (1, 2, 3):
        await site.admit(org=org, project=org, most=1)
    await site.admit(org=1, project=1, most=1)
    assert site.asked == []
    with pytest.raises(RefusedError):
        await site.admit(org=3, project=3, most=1)


@pytest.mark.parametrize(
    ("planned", "most"),
    [
        (1, 1),
        (UNLIMITED, plans.MOST_ACTIVE_QUERIES),
        (plans.MOST_ACTIVE_QUERIES + 1, plans.MOST_ACTIVE_QUERIES),
    ],
)
def test_bounds_of_plans(planned: int, most: int) -> None:
    limits = replace(plans.PLANS["pro"], sql_concurrent_queries=planned)
    assert active.bound(limits) == most
