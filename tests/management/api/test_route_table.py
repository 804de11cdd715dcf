"""Asks every route with every kind of credential and role; the docs have the table of answers.

`CARAWAY_WRITE_DOCS=1` writes the table in place of comparing it.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import clients, sessions
from caraway_management.domain.scopes import SCOPES, Role
from caraway_management.store.tables import Org, User
from tests.kit import management
from tests.kit.management import Caller, Installation
from tests.kit.management_routes import RouteRequest, requests

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "management-api.md"
BEGIN, END = "<!-- routes -->\n", "<!-- end of routes -->\n"
MISSING = 999_999_999
ROLES = (Role.VIEWER, Role.MEMBER, Role.ADMIN, Role.OWNER)
COLUMNS = (
    "none", "no scope", "viewer", "member", "admin", "owner", "machine", "session",
    "session without X-Org-Name", "deleted organization",
)  # fmt: skip
ENDING = ("DELETE /v1/orgs/{orgId}", "POST /v1/orgs/{orgId}/leave")
"""Routes after which the organization or its members are of no use to others."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The statuses and codes of a route, by the columns of the table."""

    route: RouteRequest
    found: Mapping[str, tuple[int, str | None]]

    def line(self) -> str:
        cells = [f"`{self.route.title}`", self.route.scope or "-"]
        cells += [str(self.found[column][0]) for column in COLUMNS]
        return f"| {' | '.join(cells)} |\n"


class Askers:
    """Callers of one organization, one for each column."""

    def __init__(self, made: Installation, name: str) -> None:
        self._made = made
        self._name, self._gone = name, f"{name}-gone"
        owner = made.add_user()
        self.org, self.deleted = made.add_org(name, owner), made.add_org(self._gone, owner)
        self._users = {role: made.add_member(self.org, role) for role in ROLES[:-1]}
        self._users[Role.OWNER] = owner
        self._tokens = {role: made.sign_in(user, org=name) for role, user in self._users.items()}
        self._tokenless = made.sign_in(owner, "credentials:read", "orgs:read", org=name)
        # A credential that lacks the scope of the route, whatever it is.
        self._scopeless = {
            scope: made.sign_in(owner, self._other(scope), org=name) for scope in SCOPES
        }
        self._machine = self._machine_token()
        self._delete()

    def ask(self, route: RouteRequest) -> Answers:
        found = {column: self._ask(route, make) for column, make in self._callers(route)}
        return Answers(route, found)

    def _callers(self, route: RouteRequest) -> Iterator[tuple[str, Callable[[], Caller]]]:
        made = self._made
        yield "none", made.anonymous
        yield "no scope", lambda: self._scopeless.get(route.scope or "", self._tokenless)
        yield "session without X-Org-Name", lambda: self._session(None)
        yield "session", lambda: self._session(self._name)
        yield "deleted organization", lambda: made.sign_in(self._users[Role.OWNER], org=self._gone)
        yield "machine", lambda: Caller(made.client, self._machine)
        for role in ROLES:
            yield str(role), lambda role=role: self._tokens[role]  # type: ignore[misc]

    def _ask(self, route: RouteRequest, make: Callable[[], Caller]) -> tuple[int, str | None]:
        caller = make()
        is_deleted = caller._headers.get("x-org-name") == self._gone
        org = self.deleted if is_deleted else self.org
        path = route.at({"orgId": org.id}, MISSING)
        answer = caller.send(
            route.method, path, json=route.body, params=dict(route.query),
            headers={"x-project-id": str(MISSING)},
        )  # fmt: skip
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        body = answer.json() if is_json and answer.content else None
        return answer.status_code, body.get("code") if isinstance(body, dict) else None

    def _session(self, org: str | None) -> Caller:
        owner = self._users[Role.OWNER]

        async def add(session: AsyncSession) -> str:
            user = await session.get_one(User, owner.id)
            now = self._made.clock()
            return (await sessions.add_session(session, now, user, "127.0.0.1", "test")).value

        return Caller(self._made.client, self._made.change(add), org)

    def _machine_token(self) -> str:
        async def add(session: AsyncSession) -> tuple[str, str]:
            client, secret = await clients.add_client(
                session, self._made.clock(), self.org.id, "ci", "", sorted(SCOPES), None,
                Role.OWNER, None,
            )  # fmt: skip
            return client.client_id, secret

        client_id, secret = self._made.change(add)
        answer = self._made.anonymous().post(
            "/api/oauth/token",
            {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret},
        )
        value: str = answer.json()["access_token"]
        return value

    def _delete(self) -> None:
        async def delete(session: AsyncSession) -> None:
            (await session.get_one(Org, self.deleted.id)).deleted_at = self._made.clock()

        self._made.change(delete)

    @staticmethod
    def _other(scope: str) -> str:
        resource = scope.partition(":")[0]
        return "apps:read" if resource != "apps" else "secrets:read"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Answers]:
    """The answers of all routes, over SQLite."""
    url = management.prepared_embedded_url(tmp_path_factory.mktemp("routes"))
    with management.installation(url, is_prepared=True) as made:
        shared = Askers(made, "acme")
        return [
            (Askers(made, route.name) if route.title in ENDING else shared).ask(route)
            for route in requests(management.declared_app())
        ]


def test_no_route_fails(answers: list[Answers]) -> None:
    failed = [
        (each.route.title, column, status)
        for each in answers
        for column, (status, _) in each.found.items()
        if status >= 500
    ]
    assert failed == []


def test_credentials_scopes_and_organizations_are_checked_before_anything_else(
    answers: list[Answers],
) -> None:
    wrong = []
    for each in answers:
        route = each.route
        if not route.needs_credential:
            continue
        expected: dict[str, tuple[int, str | None]] = {"none": (401, None)}
        if route.scope is not None:
            expected["no scope"] = (403, "insufficient_scope")
        if route.within is not None:
            expected["session without X-Org-Name"] = (400, "org_assertion_required")
            expected["deleted organization"] = (403, "org_deleted")
        wrong += [
            (route.title, column, each.found[column])
            for column, answer in expected.items()
            if each.found[column] != answer
        ]
    assert wrong == []


def test_the_docs_have_the_answers(answers: list[Answers]) -> None:
    head = f"| route | scope | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 2)}\n"
    table = head + "".join(each.line() for each in answers)
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}{table}{END}{after}"
    if os.environ.get("CARAWAY_WRITE_DOCS") == "1":
        PAGE.write_text(wanted)
    assert page == wanted, "run this test with CARAWAY_WRITE_DOCS=1, and look at the difference"
