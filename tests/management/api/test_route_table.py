"""Asks every route with every kind of credential and role; the docs have the table of answers.

`CARAWAY_WRITE_DOCS=1` writes the table in place of comparing it.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import sessions
from caraway_management.domain import plans, scopes
from caraway_management.domain.scopes import SCOPES, Role
from caraway_management.organizations import plan_rows
from caraway_management.store.tables import Member, Org, User
from tests.kit import management
from tests.kit.management import Caller, Installation
from tests.kit.management_credentials import callers
from tests.kit.management_routes import RouteRequest, requests

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "management-api.md"
BEGIN, END = "<!-- routes -->\n", "<!-- end of routes -->\n"
MISSING = 999_999_999
ROLES = (Role.VIEWER, Role.MEMBER, Role.ADMIN, Role.OWNER)
KINDS_OF_OWNER = ("token of one organization", "command line", "granted program", "machine")
COLUMNS = (
    "none", "no scope", *ROLES, *KINDS_OF_OWNER, "session", "session without X-Org-Name",
    "API key", "deleted organization", "over its plan",
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
        self._name, self._gone, self._full = name, f"{name}-gone", f"{name}-full"
        owner = made.add_user()
        self._orgs = {
            name: made.add_org(name, owner),
            self._gone: made.add_org(self._gone, owner),
            self._full: made.add_org(self._full, owner, "used-up"),
        }
        self._users = {role: made.add_member(self._orgs[name], role) for role in ROLES[:-1]}
        self._users[Role.OWNER] = owner
        self._tokens = {role: made.sign_in(user, org=name) for role, user in self._users.items()}
        self._kinds = callers(made, owner, self._orgs[name])
        self._tokenless = made.sign_in(owner, "credentials:read", "orgs:read", org=name)
        # A credential that lacks the scope of the route, whatever it is.
        self._scopeless = {
            scope: made.sign_in(owner, self._other(scope), org=name) for scope in SCOPES
        }
        self._deleted = made.sign_in(owner, org=self._gone)
        self._used_up = made.sign_in(owner, org=self._full)
        project = made.sign_in(owner, org=self._full).post("/v1/projects", {"name": "the-last"})
        keys = self._used_up.get(f"/v1/projects/{project.json()['id']}/api-keys").json()
        self._api_key = Caller(made.client, keys["api_key"])
        self._delete()

    def ask(self, route: RouteRequest) -> Answers:
        found = {column: self._ask(route, column, make) for column, make in self._callers(route)}
        return Answers(route, found)

    def _callers(self, route: RouteRequest) -> Iterator[tuple[str, Callable[[], Caller]]]:
        yield "none", self._made.anonymous
        yield "no scope", lambda: self._scopeless.get(route.scope or "", self._tokenless)
        yield "session without X-Org-Name", lambda: self._session(None)
        yield "session", lambda: self._session(self._name)
        yield "API key", lambda: self._api_key
        yield "deleted organization", lambda: self._deleted
        yield "over its plan", lambda: self._used_up
        for kind in KINDS_OF_OWNER:
            yield kind, lambda kind=kind: self._kinds[kind]  # type: ignore[misc]
        for role in ROLES:
            yield str(role), lambda role=role: self._tokens[role]  # type: ignore[misc]

    def _ask(
        self, route: RouteRequest, column: str, make: Callable[[], Caller]
    ) -> tuple[int, str | None]:
        of_states = {"deleted organization": self._gone, "over its plan": self._full}
        org = self._orgs[of_states.get(column, self._name)]
        path = route.at({"orgId": org.id}, MISSING)
        answer = make().send(
            route.method, path, json=route.body, params=dict(route.query),
            headers={"x-project-id": str(MISSING)},
        )  # fmt: skip
        return status_and_code(answer)

    def _session(self, org: str | None) -> Caller:
        owner = self._users[Role.OWNER]

        async def add(session: AsyncSession) -> str:
            user = await session.get_one(User, owner.id)
            now = self._made.clock()
            return (await sessions.add_session(session, now, user, "127.0.0.1", "test")).value

        return Caller(self._made.client, self._made.change(add), org)

    def _delete(self) -> None:
        async def delete(session: AsyncSession) -> None:
            (await session.get_one(Org, self._orgs[self._gone].id)).deleted_at = self._made.clock()

        self._made.change(delete)

    @staticmethod
    def _other(scope: str) -> str:
        resource = scope.partition(":")[0]
        return "apps:read" if resource != "apps" else "secrets:read"


def status_and_code(answer: httpx2.Response) -> tuple[int, str | None]:
    """Return the status of an answer, and the code of its body."""
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    body = answer.json() if is_json and answer.content else None
    return answer.status_code, body.get("code") if isinstance(body, dict) else None


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation over SQLite, with a plan that one project and one user use up."""
    url = management.prepared_embedded_url(tmp_path_factory.mktemp("routes"))
    with management.installation(url, is_prepared=True) as made:
        limits = plans.PLANS["developer"].as_json() | {"apps": 1, "users": 1}

        async def add(session: AsyncSession) -> None:
            await plan_rows.write(session, made.clock(), "used-up", limits)

        made.change(add)
        yield made


@pytest.fixture(scope="module")
def answers(installation: Installation) -> list[Answers]:
    """The answers of all routes."""
    shared = Askers(installation, "acme")
    return [
        (Askers(installation, route.name) if route.title in ENDING else shared).ask(route)
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
        expected["API key"] = (401, None)
        wrong += [
            (route.title, column, each.found[column])
            for column, answer in expected.items()
            if each.found[column] != answer
        ]
    assert wrong == []


def test_kind_role_and_state_do_not_depend_on_each_other(installation: Installation) -> None:
    """The table shows each for itself; this shows that it need not show them together."""
    titles = {
        "GET /v1/projects", "POST /v1/projects", "GET /v1/orgs/{orgId}/secrets",
        "POST /v1/invitations", "DELETE /v1/oauth-clients/{clientId}",
    }  # fmt: skip
    asked = [each for each in requests(management.declared_app()) if each.title in titles]
    assert len(asked) == len(titles)
    user, wrong = installation.add_user(), []
    for state, plan in (("active", "enterprise"), ("used up", "used-up"), ("deleted", "pro")):
        for role in ROLES:
            org = installation.add_org(f"{state.replace(' ', '-')}-{role}", user, plan)

            async def prepare(session: AsyncSession, org: Org = org, role: Role = role) -> None:
                (await session.get_one(Member, (org.id, user.id))).role = role
                if org.plan == "pro":
                    (await session.get_one(Org, org.id)).deleted_at = installation.clock()

            installation.change(prepare)
            for kind, caller in callers(installation, user, org, role=role).items():
                caller.act_in(org.name)
                for route in asked:
                    answer = caller.send(
                        route.method, route.at({"orgId": org.id}), json=unlike(route.body)
                    )
                    expected: tuple[int, str | None] = (
                        {"GET": 200, "POST": 201}.get(route.method, 404),
                        None,
                    )
                    if state == "deleted":
                        expected = 403, "org_deleted"
                    elif route.scope not in scopes.allowed(role):
                        expected = 403, "forbidden"
                    elif state == "used up" and route.title == "POST /v1/invitations":
                        expected = 403, "plan_limit"
                    found = status_and_code(answer)
                    is_full = state == "used up" and route.title == "POST /v1/projects"
                    if found != expected and not (is_full and found == (403, "plan_limit")):
                        wrong.append((kind, role, state, route.title, found, expected))
    assert wrong == []


_numbers = itertools.count(1)


def unlike(body: object) -> object:
    """Return a body with a name and an address that no other one has."""
    if not isinstance(body, dict):
        return body
    number = next(_numbers)
    new = {"name": f"sample-{number}", "email": f"a{number}@example.com"}
    return body | {key: value for key, value in new.items() if key in body}


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
