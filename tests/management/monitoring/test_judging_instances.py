"""Several instances of the service, of which one judges the monitors."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.engine import URL

from caraway_management.monitoring import leases
from caraway_management.monitoring.judging import LEASE, Judge
from caraway_management.store.tables import (
    Lease,
)  # fmt: skip
from tests.kit.management import Installation
from tests.kit.monitored_projects import FIRED, Shop, mailing


@pytest.fixture
def installation(prepared_url: URL) -> Iterator[Installation]:
    with mailing(prepared_url) as made:
        yield made


def test_an_instance_that_starts_later_goes_on_where_the_other_was(
    installation: Installation,
) -> None:
    shop = Shop(installation)
    for failures in (0, 0, 2):
        shop.minute(query_failures=failures)
    installation.clock.advance(seconds=120)
    other = Judge(installation.services, "two")
    for failures in (2, 3, 4):
        assert shop.minute(other, query_failures=failures)["state"] == "firing"
    assert shop.notices() == FIRED


def test_one_of_several_instances_judges(installation: Installation) -> None:
    shop = Shop(installation)
    two = Judge(installation.services, "two")
    assert installation.run(shop.judge.run_once) == 1
    assert installation.run(two.run_once) == 0
    installation.clock.advance(seconds=119)
    assert installation.run(two.run_once) == 0
    installation.clock.advance(seconds=1)
    assert installation.run(two.run_once) == 1
    assert installation.run(shop.judge.run_once) == 0


def test_two_instances_that_both_judge_alarm_once(installation: Installation) -> None:
    """Although the lease goes to another instance between each look and its change."""
    shop = Shop(installation)
    shop.minute(query_failures=0)
    shop.minute(query_failures=0)
    shop.sample(query_failures=1)
    installation.clock.advance(seconds=1)
    services = installation.services

    async def both() -> None:
        from caraway_management.monitoring import judging

        now = services.now()
        async with services.database.read() as session:
            one = await judging._judge_all(session, now)
        async with services.database.read() as session:
            two = await judging._judge_all(session, now)
        for judged in (one, two):
            async with services.database.change() as session:
                await judging._store(session, now, [each for each in judged if each.is_changed])

    installation.run(both)
    assert shop.notices() == FIRED


def test_an_instance_that_lost_the_lease_stores_nothing(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(installation)
    for _ in range(2):
        shop.minute(query_failures=0)
    renew = leases.renew
    calls = 0

    async def lose_then_renew(session: Any, *arguments: Any) -> bool:
        nonlocal calls
        calls += 1
        if calls == 2:
            until = installation.clock() + timedelta(hours=1)
            lost = update(Lease).where(Lease.name == LEASE)
            await session.execute(lost.values(owner="two", until=until))
        return await renew(session, *arguments)

    monkeypatch.setattr(leases, "renew", lose_then_renew)
    assert shop.minute(query_failures=9)["state"] == "ok"
    assert calls == 2
    assert shop.notices() == []
