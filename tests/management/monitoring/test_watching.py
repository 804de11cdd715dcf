import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import select, update

from caraway_management.domain import watching as rules
from caraway_management.monitoring import announcing, leases
from caraway_management.monitoring.looking import LEASE_S, Looker
from caraway_management.monitoring.watching import Bounds, RowJudge
from caraway_management.secrets import api_keys
from caraway_management.store.tables import ApiKey, OutboxEntry, Project
from tests.kit.deployed_projects import DeployedProject, new_project
from tests.kit.fake_runtime import Answering, FakeRuntime
from tests.kit.management import Installation

MATCH = {
    "name": "Late",
    "kind": "dataset_row_match",
    "spec": {"dataset": "orders", "where": "is_late"},
    "targets": {"http": {"url": "https://hooks.example.com/a"}},
}
QUERY = MATCH | {"name": "Query", "kind": "dataset_query", "spec": {"query": "SELECT 1"}}
ROWS = [{"id": 1}, {"id": 2}]


def _answer(status: int, content: bytes) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(status, content=content)


class Shop:
    """A deployed project with a reaction to rows."""

    def __init__(self, installation: Installation, body: dict[str, Any] = MATCH) -> None:
        self.installation = installation
        self.project: DeployedProject = new_project(installation)
        self.project.deploy()
        installation.work()
        self.path = f"{self.project.path}/reactions"
        self.id = self.add(body)
        self.runtime = FakeRuntime()
        self.holds([])

    def add(self, body: dict[str, Any]) -> str:
        made = self.project.caller.post(self.path, body)
        assert made.status_code == 201, made.text
        id_: str = made.json()["id"]
        return id_

    def holds(self, rows: list[dict[str, Any]]) -> None:
        """Let queries return these rows from now on."""
        self.runtime.answer = _answer(200, json.dumps(rows).encode())

    def look(
        self,
        owner: str = "one",
        transport: httpx.AsyncBaseTransport | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        """Judge the reactions, a minute after the last time."""
        self.installation.clock.advance(seconds=60)
        used = transport or self.runtime
        services = self.installation.services
        looker = Looker(services, owner, RowJudge(services, owner, bounds), transport=used)
        self.installation.run(looker.run_once)

    def shown(self, id_: str = "") -> dict[str, Any]:
        found: dict[str, Any] = self.project.caller.get(f"{self.path}/{id_ or self.id}").json()
        return found

    def notices(self) -> list[dict[str, Any]]:
        query = select(OutboxEntry).where(OutboxEntry.kind == announcing.KIND)
        entries = self.installation.rows(query.order_by(OutboxEntry.id))
        return [entry.payload["notice"] for entry in entries]

    @property
    def types(self) -> list[str]:
        return [notice["type"] for notice in self.notices()]


def test_rows_are_announced_once_and_their_end_once(installation: Installation) -> None:
    shop = Shop(installation)
    shop.look()
    assert (shop.notices(), shop.shown()["state"]) == ([], "ok")
    shop.holds(ROWS)
    shop.look()
    [notice] = shop.notices()
    assert (notice["type"], notice["data"]["count"]) == ("reaction.matched", 2)
    assert notice["data"]["summary"] == "2 rows of dataset 'orders' match."
    assert notice["data"]["details"] == {"rows": ROWS}
    fired = installation.clock().isoformat()
    shop.holds([*ROWS, {"id": 3}])
    shop.look()
    shop.holds([])
    shop.look()
    assert shop.types == ["reaction.matched"]
    shown = shop.shown()
    assert (shown["state"], shown["last_fired_at"], shown["revision"]) == ("firing", fired, 1)
    shop.look()
    shop.look()
    assert shop.types == ["reaction.matched", "reaction.resolved"]
    assert shop.notices()[1]["data"]["summary"] == "0 rows of dataset 'orders' match."
    assert shop.shown()["state"] == "ok"
    assert shop.shown()["last_resolved_at"] is not None


def test_the_query_is_sent_with_the_key_of_the_service(installation: Installation) -> None:
    shop = Shop(installation, QUERY)
    shop.look()
    [request] = shop.runtime.requests
    assert str(request.url) == f"http://127.0.0.1:{8_000 + shop.project.id}/v1/sql"
    assert request.content.decode() == rules.statement("dataset_query", {"query": "SELECT 1"})

    async def own(session: Any) -> str:
        key = await session.get_one(ApiKey, (shop.project.id, api_keys.OF_SERVICE))
        sealer = installation.services.sealer
        return await api_keys.open_own(session, sealer, shop.project.id, key.sealed)

    assert request.headers["x-api-key"] == installation.change(own)


def test_rows_must_be_enough_and_match_long_enough(installation: Installation) -> None:
    spec = {"query": "SELECT 1", "minRows": 2, "sustainSecs": 60}
    shop = Shop(installation, QUERY | {"spec": spec})
    shop.holds(ROWS[:1])
    shop.look()
    assert shop.shown()["state"] == "ok"
    shop.holds(ROWS)
    shop.look()
    assert (shop.shown()["state"], shop.types) == ("pending", [])
    shop.look()
    assert (shop.shown()["state"], shop.types) == ("firing", ["reaction.matched"])


def test_queries_that_fail_raise_no_alarm_and_say_why(installation: Installation) -> None:
    shop = Shop(installation, QUERY)
    shop.holds(ROWS)
    shop.look()
    table = [
        (400, b"table 'nope' not found", "the runtime refused the query: table 'nope' not found"),
        (400, b"syntax error\n\0", "the runtime refused the query: syntax error"),
        (503, b"starting", "the runtime answered 503"),
        (401, b"a secret", "the runtime answered 401"),
        (200, b"[" + b" " * 1024 * 1024 + b"]", "the rows have more than 1024 KiB"),
        (200, b"[" * 100_000, "the runtime does not answer: "),
        (200, b'[{"a": 1}, ', "the runtime does not answer: JSONDecodeError"),
        (200, b"[1, 2]", "the runtime did not answer with rows"),
    ]
    for status, content, reason in table:
        shop.runtime.answer = _answer(status, content)
        shop.look()
        shown = shop.shown()
        # A monitor that fires goes on: it is not known whether its rows are gone.
        assert shown["state"] == "firing"
        assert shown["evaluation_unavailable_reason"].startswith(reason), reason
    shop.holds(ROWS)
    shop.look()
    assert shop.shown()["evaluation_unavailable_reason"] is None
    assert shop.types == ["reaction.matched"]


def test_a_query_that_never_ends_is_given_up(installation: Installation) -> None:
    shop = Shop(installation, QUERY)
    stopped: list[str] = []

    async def hang(request: httpx.Request) -> httpx.Response:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(request.method)
        raise AssertionError

    shop.look(transport=Answering(hang), bounds=Bounds(query_s=0.01))
    reason = shop.shown()["evaluation_unavailable_reason"]
    assert reason == "the query did not finish within 0.01 s"
    assert (stopped, shop.types) == (["POST"], [])


def test_queries_that_had_to_wait_for_others_are_first_the_next_time(
    installation: Installation,
) -> None:
    shop = Shop(installation, QUERY)
    ids = {shop.id: "SELECT 1", shop.add(MATCH): "orders"}

    async def hang(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    shop.look(transport=Answering(hang), bounds=Bounds(query_s=0.01, project_s=0.001))
    reasons = {shop.shown(id_)["evaluation_unavailable_reason"]: id_ for id_ in ids}
    assert reasons.keys() == {"the query did not finish within 0.01 s", rules.LATE}
    shop.look()
    first, _ = shop.runtime.requests
    assert ids[reasons[rules.LATE]] in first.content.decode()
    assert {shop.shown(id_)["evaluation_unavailable_reason"] for id_ in ids} == {None}
    # Without any time left, nothing is asked, and everything stays as it is.
    shop.look(bounds=Bounds(all_s=0))
    assert len(shop.runtime.requests) == 2


def test_a_query_that_never_ends_is_suspended(installation: Installation) -> None:
    shop = Shop(installation)
    services = installation.services
    judge = RowJudge(services, "one", Bounds(query_s=0.01))
    is_up, is_slow = True, True

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.content.decode() == rules.PROBE and is_up:
            return httpx.Response(200, json=[{"1": 1}])
        if not is_slow:
            return httpx.Response(200, json=[])
        return await asyncio.Future()

    def look(times: int) -> None:
        for _ in range(times):
            installation.clock.advance(seconds=60)
            looker = Looker(services, "one", judge, transport=Answering(answer))
            installation.run(looker.run_once)

    look(rules.MOST_SLOW - 1)
    assert shop.shown()["enabled"]
    # A runtime that does not answer at all is not a fault of the query.
    is_up = False
    look(2)
    shown = shop.shown()
    assert (shown["enabled"], shown["state"], shown["suspended_code"]) == (True, "ok", None)
    is_up = True
    look(1)
    shown = shop.shown()
    assert (shown["enabled"], shown["state"]) == (False, "suspended")
    assert shown["suspended_code"] == "query_too_slow"
    assert shown["evaluation_unavailable_reason"] == rules.SUSPENDED
    assert shown["revision"] == 2
    again = shop.project.caller.patch(f"{shop.path}/{shop.id}", {"enabled": True}).json()
    assert (again["state"], again["suspended_code"]) == ("ok", None)
    assert again["evaluation_unavailable_reason"] is None
    # It has as many tries again.
    look(rules.MOST_SLOW - 1)
    assert shop.shown()["enabled"]
    # One that ends in time counts from the beginning.
    is_slow = False
    look(1)
    is_slow = True
    look(rules.MOST_SLOW - 1)
    assert shop.shown()["enabled"]
    look(1)
    assert not shop.shown()["enabled"]


def test_one_of_several_instances_looks(installation: Installation) -> None:
    shop = Shop(installation)
    shop.look()
    shop.look("two")
    assert len(shop.runtime.requests) == 1
    shop.look("two")
    assert len(shop.runtime.requests) == 2


def test_a_reaction_that_is_changed_meanwhile_keeps_what_it_has(installation: Installation) -> None:
    shop = Shop(installation)

    async def late(request: httpx.Request) -> httpx.Response:
        def change() -> None:
            changed = shop.project.caller.patch(f"{shop.path}/{shop.id}", {"name": "Other"})
            assert changed.status_code == 200

        await asyncio.to_thread(change)
        return httpx.Response(200, json=ROWS)

    shop.look(transport=Answering(late))
    assert (shop.shown()["state"], shop.types) == ("ok", [])


def test_an_instance_that_lost_the_lease_stores_nothing(installation: Installation) -> None:
    shop = Shop(installation)
    services = installation.services

    async def late(request: httpx.Request) -> httpx.Response:
        later = services.now() + timedelta(seconds=LEASE_S)
        assert await leases.take(services.database, later, RowJudge.lease, "another", LEASE_S)
        return httpx.Response(200, json=ROWS)

    shop.look(transport=Answering(late))
    assert (shop.shown()["state"], shop.types) == ("ok", [])


def test_a_changed_condition_is_judged_from_the_beginning(installation: Installation) -> None:
    shop = Shop(installation)
    shop.holds(ROWS)
    shop.look()
    one = f"{shop.path}/{shop.id}"
    changed = shop.project.caller.patch(one, {"spec": {"minRows": 2}}).json()
    assert (changed["state"], changed["since"], changed["spec"]["minRows"]) == ("ok", None, 2)
    shop.look()
    assert shop.types == ["reaction.matched"] * 2
    # A disabled one, and one of a paused project, is not judged.
    assert shop.project.caller.patch(one, {"enabled": False}).json()["state"] == "ok"
    asked = len(shop.runtime.requests)
    shop.look()
    assert shop.project.caller.patch(one, {"enabled": True}).status_code == 200

    async def pause(session: Any) -> None:
        await session.execute(update(Project).values(paused_at=installation.clock()))

    installation.change(pause)
    shop.look()
    assert len(shop.runtime.requests) == asked
