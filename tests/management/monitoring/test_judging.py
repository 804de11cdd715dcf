import contextlib
import json
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import delete, event, select, update
from sqlalchemy.engine import URL

from caraway_management.monitoring import leases
from caraway_management.monitoring.judging import Judge
from caraway_management.store.tables import (
    MetricSample,
    Monitor,
    Org,
    OutboxEntry,
    Project,
)  # fmt: skip
from tests.kit.management import Installation
from tests.kit.monitored_projects import BODY, FIRED, RESOLVED, UP, Shop, mailing


@pytest.fixture
def installation(prepared_url: URL) -> Iterator[Installation]:
    with mailing(prepared_url) as made:
        yield made


def test_a_monitor_fires_once_and_resolves_once(installation: Installation) -> None:
    shop = Shop(installation)
    assert shop.minute(query_failures=3)["evaluation_unavailable_reason"] == (
        "there are too few samples yet"
    )
    assert shop.minute(query_failures=3)["state"] == "ok"
    fired = shop.minute(query_failures=5)
    assert (fired["state"], fired["evaluation_unavailable_reason"]) == ("firing", None)
    assert fired["last_fired_at"] == installation.clock().isoformat()
    assert fired["revision"] == 1
    assert shop.minute(query_failures=6)["state"] == "firing"
    assert shop.notices() == FIRED
    assert shop.minute(query_failures=6)["state"] == "firing"
    assert shop.minute(query_failures=6)["state"] == "firing"
    resolved = shop.minute(query_failures=6)
    assert resolved["state"] == "ok"
    assert resolved["last_resolved_at"] == installation.clock().isoformat()
    assert resolved["last_fired_at"] == fired["last_fired_at"]
    assert shop.notices() == FIRED + RESOLVED


def test_a_notice_says_what_happened_and_holds_no_secret(installation: Installation) -> None:
    shop = Shop(installation)
    for failures in (0, 0, 2):
        shop.minute(query_failures=failures)
    entries = installation.rows(select(OutboxEntry).where(OutboxEntry.kind == "send notice"))
    notice = entries[0].payload["notice"]
    assert notice["data"] == {
        "name": "Failures",
        "subject": "project 'shop'",
        "summary": "Failed queries over 1m is more than 0.",
        "monitor_id": shop.path.rpartition("/")[2],
        "template": "query_failures",
        "severity": "warn",
        "project_id": shop.id,
        "cluster_name": None,
        "details": {"value": 2, "unit": "", "op": "GT", "threshold": 0, "window": "1m"},
    }
    # All targets get the same id.
    assert {entry.payload["notice"]["id"] for entry in entries} == {notice["id"]}
    assert "t0ken" not in json.dumps([entry.payload for entry in entries])
    assert len({entry.subject for entry in entries}) == 2


def test_details_are_left_out_if_they_are_not_wanted(installation: Installation) -> None:
    shop = Shop(installation, spec=BODY["spec"] | {"includeDetails": False})  # type: ignore[operator]
    for failures in (0, 0, 2):
        shop.minute(query_failures=failures)
    [first, *_] = installation.rows(select(OutboxEntry).where(OutboxEntry.kind == "send notice"))
    assert "details" not in first.payload["notice"]["data"]


def test_missing_samples_say_why_and_change_nothing(installation: Installation) -> None:
    shop = Shop(installation)
    for failures in (0, 0, 2):
        shop.minute(query_failures=failures)
    for _ in range(6):
        shown = shop.minute()
    assert shown["state"] == "firing"
    assert shown["evaluation_unavailable_reason"] == (
        "there are no recent samples of the project's metrics"
    )
    assert shop.notices() == FIRED


def test_a_monitor_that_is_changed_while_it_is_judged_keeps_its_change(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(installation)
    for _ in range(2):
        shop.minute(query_failures=0)
    renew = leases.renew
    calls = 0

    async def change_then_renew(session: Any, *arguments: Any) -> bool:
        nonlocal calls
        calls += 1
        if calls == 2:
            await session.execute(update(Monitor).values(revision=Monitor.revision + 1))
        return await renew(session, *arguments)

    monkeypatch.setattr(leases, "renew", change_then_renew)
    assert shop.minute(query_failures=2)["state"] == "ok"
    assert shop.notices() == []
    assert shop.minute(query_failures=4)["state"] == "firing"


def test_a_changed_condition_is_judged_from_the_beginning(installation: Installation) -> None:
    shop = Shop(installation)
    for failures in (0, 0, 2):
        shop.minute(query_failures=failures)
    changed = shop.owner.patch(shop.path, {"spec": {"threshold": 100}}).json()
    assert changed["state"] == "ok"
    assert shop.minute(query_failures=3)["state"] == "ok"
    assert shop.notices() == FIRED


def test_disabled_monitors_and_paused_or_deleted_projects_are_not_judged(
    installation: Installation,
) -> None:
    shop = Shop(installation)
    for failures in (0, 0):
        shop.minute(query_failures=failures)
    shop.owner.patch(shop.path, {"enabled": False})
    assert shop.minute(query_failures=2)["state"] == "ok"
    shop.owner.patch(shop.path, {"enabled": True})

    async def pause(session: Any) -> None:
        await session.execute(update(Project).values(paused_at=installation.clock()))

    installation.change(pause)
    shown = shop.minute(query_failures=4)
    assert (shown["state"], shown["evaluation_unavailable_reason"]) == (
        "ok",
        "the project is paused",
    )

    async def remove(session: Any) -> None:
        await session.execute(update(Project).values(deleted_at=installation.clock()))

    installation.change(remove)
    assert installation.run(shop.judge.run_once) == 0
    assert shop.notices() == []


def test_a_failed_transaction_leaves_neither_state_nor_notice(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from caraway_management.monitoring import announcing

    shop = Shop(installation)
    for _ in range(2):
        shop.minute(query_failures=0)
    enqueue = announcing.enqueue

    async def fail(*arguments: Any) -> None:
        await enqueue(*arguments)
        raise RuntimeError("killed")

    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(announcing, "enqueue", fail)
        shop.minute(query_failures=2)
    assert shop.owner.get(shop.path).json()["state"] == "ok"
    assert shop.notices() == []
    assert shop.minute(query_failures=3)["state"] == "firing"
    assert shop.notices() == FIRED


@contextlib.contextmanager
def _counting(installation: Installation) -> Iterator[list[str]]:
    """Collect the statements that are sent to the database."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    database = installation.services.database
    # An engine with other options shares the pool, and what the first one hears.
    engines = {id(each.pool): each for each in (database._reader, database._writer)}
    for engine in engines.values():
        event.listen(engine.sync_engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        for engine in engines.values():
            event.remove(engine.sync_engine, "before_cursor_execute", note)


def test_200_monitors_are_judged_by_a_bounded_number_of_statements(
    installation: Installation,
) -> None:
    user = installation.add_user()
    org = installation.add_org("acme", user)
    now = installation.clock()
    chosen = random.Random(12)

    async def fill(session: Any) -> None:
        await session.execute(delete(Monitor))
        rows = [
            Project(
                id=number, org_id=org.id, name=f"p{number}", name_key=f"p{number}", tags={},
                config={}, created_at=now, updated_at=now,
            )
            for number in range(1, 201)
        ]  # fmt: skip
        session.add_all(rows)
        await session.flush()
        for number in range(1, 201):
            window = chosen.choice(["1m", "5m", "15m"])
            spec = {
                "op": "GT", "threshold": 50, "window": window, "sustainSecs": 300,
                "severity": "warn", "includeDetails": True,
            }  # fmt: skip
            session.add(
                Monitor(
                    id=str(number), org_id=org.id, project_id=number, name="m", name_key="m",
                    template="query_failures", spec=spec, targets={}, created_at=now,
                    updated_at=now,
                )
            )  # fmt: skip
            for minute in range(3):
                at = now + timedelta(seconds=30 * minute)
                values = UP | {"query_failures": 100 * minute if number % 2 else 0}
                session.add(MetricSample(project_id=number, at=at, values=values))

    installation.change(fill)
    installation.clock.advance(seconds=60)
    judge = Judge(installation.services, "one")
    with _counting(installation) as statements:
        assert installation.run(judge.run_once) == 200
    states = installation.rows(select(Monitor.state))
    assert (states.count("pending"), states.count("ok")) == (100, 100)
    asked = [each for each in statements if not each.startswith(("BEGIN", "SAVEPOINT"))]
    # Take the lease (3, the first time), monitors, samples per window (3), renew, lock, update.
    assert len(asked) <= 12, asked
    quiet = Judge(installation.services, "one")
    with _counting(installation) as statements:
        installation.run(quiet.run_once)
    assert len([each for each in statements if not each.startswith("BEGIN")]) <= 6, statements


def test_deleted_organizations_are_not_judged(installation: Installation) -> None:
    shop = Shop(installation)

    async def remove(session: Any) -> None:
        await session.execute(update(Org).values(deleted_at=installation.clock()))

    installation.change(remove)
    assert installation.run(shop.judge.run_once) == 0


def test_the_storage_of_a_project_fires_at_90_percent_of_its_quota(
    installation: Installation,
) -> None:
    spec = {"op": "GEQ", "threshold": 90, "sustainSecs": 0, "window": "1m"}
    shop = Shop(installation, template="storage", spec=spec)

    async def set_quota(session: Any) -> None:
        await session.execute(update(Project).values(config={"storage_size_gb": 10}))

    installation.change(set_quota)
    assert shop.minute(disk_bytes=8 * 1000**3)["state"] == "ok"
    installation.clock.advance(seconds=60)
    assert shop.minute(disk_bytes=9 * 1000**3)["state"] == "firing"
    assert shop.notices() == FIRED
