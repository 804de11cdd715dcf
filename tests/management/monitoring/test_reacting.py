import json
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import select, update

from caraway_management.domain import reactions
from caraway_management.monitoring import announcing
from caraway_management.monitoring.looking import Looker
from caraway_management.monitoring.reacting import EventJudge
from caraway_management.secrets import api_keys
from caraway_management.store.tables import OutboxEntry, Project, Reaction
from tests.kit.deployed_projects import DeployedProject, new_project
from tests.kit.management import Installation

BODY = {
    "name": "Failures",
    "kind": "task_history_error",
    "targets": {"http": {"url": "https://hooks.example.com/a"}},
}


class Histories:
    """Answers statements over the task histories of runtimes, one history per API key."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[str] = []
        self.status = 200

    def add(self, key: str, number: int, error: str | None = "no such column") -> None:
        row = {
            "span_id": f"s{number}", "task": "sql_query", "input": f"SELECT {number}",
            "ended": number, "execution_duration_ms": 1.5, "error_message": error,
        }  # fmt: skip
        self.rows.setdefault(key, []).append(row)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        after = int(request.content.decode().split("AS BIGINT) > ")[1].split()[0])
        rows = [
            row for row in self.rows.get(request.headers["x-api-key"], []) if row["ended"] > after
        ]
        content = json.dumps(rows[: reactions.MOST_READ]).encode()
        return httpx.Response(self.status, stream=httpx.ByteStream(content))


class Shop:
    """A deployed project with a reaction."""

    def __init__(self, installation: Installation, **changes: Any) -> None:
        self.installation = installation
        self.project: DeployedProject = new_project(installation)
        self.project.deploy()
        installation.work()
        self.path = f"{self.project.path}/reactions"
        made = self.project.caller.post(self.path, BODY | changes)
        assert made.status_code == 201, made.text
        self.id: str = made.json()["id"]
        self.histories = Histories()
        self.keys = installation.change(self._keys)
        self.now = int(reactions.first_cursor(installation.clock()))

    async def _keys(self, session: Any) -> dict[int, str]:
        services = self.installation.services
        return await api_keys.make(
            session, services.sealer, self.installation.clock(), self.project.id
        )

    def look(self, owner: str = "one") -> None:
        transport = httpx.MockTransport(self.histories)
        services = self.installation.services
        looker = Looker(services, owner, EventJudge(services), transport=transport)
        self.installation.run(looker.run_once)

    def notices(self) -> list[dict[str, Any]]:
        query = select(OutboxEntry).where(OutboxEntry.kind == announcing.KIND)
        entries = self.installation.rows(query.order_by(OutboxEntry.id))
        return [entry.payload["notice"] for entry in entries]


def test_events_of_all_keys_are_announced_once(installation: Installation) -> None:
    shop = Shop(installation)
    shop.look()
    assert shop.notices() == []
    shop.histories.add(shop.keys[1], shop.now + 1)
    shop.histories.add(shop.keys[2], shop.now + 2)
    shop.look()
    [notice] = shop.notices()
    assert notice["type"] == "reaction.matched"
    assert notice["data"]["summary"] == "2 tasks failed."
    tasks = notice["data"]["details"]["tasks"]
    assert [task["input"] for task in tasks] == [f"SELECT {shop.now + 1}", f"SELECT {shop.now + 2}"]
    assert tasks[0]["ended_at"] == installation.clock().isoformat()
    shop.look()
    assert len(shop.notices()) == 1
    shop.histories.add(shop.keys[1], shop.now + 3)
    shop.look()
    assert [notice["data"]["count"] for notice in shop.notices()] == [2, 1]
    shown = shop.project.caller.get(f"{shop.path}/{shop.id}").json()
    assert shown["last_fired_at"] == installation.clock().isoformat()
    assert shown["revision"] == 1
    assert set(shop.histories.asked) == {f"http://127.0.0.1:{8_000 + shop.project.id}/v1/sql"}


def test_no_event_of_a_long_history_is_passed_over(installation: Installation) -> None:
    shop = Shop(installation)
    for number in range(1, 2 * reactions.MOST_READ + 1):
        shop.histories.add(shop.keys[1], shop.now + number)
    shop.histories.add(shop.keys[2], shop.now + reactions.MOST_READ + 5)
    for _ in range(4):
        shop.look()
    counts = [notice["data"]["count"] for notice in shop.notices()]
    assert sum(counts) == 2 * reactions.MOST_READ + 1 - 1  # One has the id of another.
    assert len(shop.notices()[0]["data"]["details"]["tasks"]) == reactions.MOST_SHOWN


def test_a_runtime_that_is_away_loses_no_event(installation: Installation) -> None:
    shop = Shop(installation)
    shop.histories.add(shop.keys[1], shop.now + 1)
    shop.histories.status = 503
    shop.look()
    assert shop.notices() == []
    shop.histories.status = 200
    shop.look()
    assert len(shop.notices()) == 1


def test_one_of_several_instances_looks(installation: Installation) -> None:
    shop = Shop(installation)
    shop.look()
    asked = len(shop.histories.asked)
    shop.look("two")
    assert len(shop.histories.asked) == asked
    installation.clock.advance(seconds=120)
    shop.look("two")
    assert len(shop.histories.asked) > asked


def test_events_before_a_reaction_and_while_it_is_disabled_do_not_count(
    installation: Installation,
) -> None:
    shop = Shop(installation)
    shop.histories.add(shop.keys[1], shop.now)
    shop.look()
    one = f"{shop.path}/{shop.id}"
    assert shop.project.caller.patch(one, {"enabled": False}).status_code == 200
    shop.histories.add(shop.keys[1], shop.now + 1)
    shop.look()
    installation.clock.advance(seconds=1)
    assert shop.project.caller.patch(one, {"enabled": True}).status_code == 200
    shop.look()
    assert shop.notices() == []


def test_paused_projects_are_not_asked(installation: Installation) -> None:
    shop = Shop(installation)

    async def pause(session: Any) -> None:
        now = installation.clock() + timedelta(0)
        await session.execute(update(Project).values(paused_at=now))

    installation.change(pause)
    shop.look()
    assert shop.histories.asked == []


def test_routes_of_reactions(installation: Installation) -> None:
    shop = Shop(installation)
    caller, one = shop.project.caller, f"{shop.path}/{shop.id}"
    shown = caller.get(one).json()
    assert (shown["kind"], shown["enabled"], shown["revision"]) == ("task_history_error", True, 1)
    assert caller.get(shop.path).json() == {"reactions": [shown]}
    table: list[tuple[dict[str, Any], int, str | None]] = [
        ({"name": "FAILURES"}, 409, "reaction_name_taken"),
        ({"name": "x", "kind": "dataset_query"}, 400, None),
        ({"name": "x", "kind": "unknown"}, 400, None),
        ({"name": "x", "kind": "task_history_slow"}, 400, None),
        ({"name": "x", "kind": "task_history_slow", "spec": {"thresholdMs": 0}}, 400, None),
        ({"name": "x", "targets": {}}, 400, None),
        ({"name": "x", "cursor": "0"}, 400, None),
    ]
    for change, status, code in table:
        answer = caller.post(shop.path, BODY | change)
        assert (answer.status_code, answer.json().get("code")) == (status, code), change
    slow = {"name": "Slow", "kind": "task_history_slow", "spec": {"thresholdMs": 500}}
    assert caller.post(shop.path, BODY | slow).json()["spec"]["thresholdMs"] == 500
    assert caller.patch(one, {"spec": {"tasks": ["ai_chat"]}, "revision": 1}).json()["spec"] == {
        "tasks": ["ai_chat"],
        "severity": "warn",
        "includeDetails": True,
    }
    stale = caller.patch(one, {"name": "y", "revision": 1})
    assert (stale.status_code, stale.json()["code"]) == (409, "reaction_changed")
    assert caller.delete(one).json() == {"ok": True}
    assert caller.get(one).status_code == 404
    for number in range(19):
        assert caller.post(shop.path, BODY | {"name": f"r{number}"}).status_code == 201
    full = caller.post(shop.path, BODY | {"name": "z"})
    assert (full.status_code, full.json()["code"]) == (409, "reaction_limit")
    [cursor] = installation.rows(select(Reaction.cursor).where(Reaction.name == "r0"))
    assert cursor == str(shop.now)
