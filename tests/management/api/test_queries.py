"""Queries that are passed to the runtimes of projects."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest
from sqlalchemy import select

from caraway_management.domain.scopes import Role
from caraway_management.passthrough.passing import Passthrough
from caraway_management.passthrough.runtimes import Runtimes
from caraway_management.store.tables import Activity, Member, Project
from tests.kit.fake_runtime import Answer, FakeRuntime
from tests.kit.management import Caller, Installation
from tests.management.api.deploying import ENDPOINT, deploy
from tests.management.api.new_projects import new_project


@pytest.fixture
def runtime(installation: Installation) -> FakeRuntime:
    made = FakeRuntime()
    app = installation.client.app
    app.state.passthrough = Passthrough(Runtimes(made))  # type: ignore[attr-defined]
    return made


@pytest.fixture
def caller(installation: Installation) -> Caller:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    return installation.sign_in(owner)


def test_every_route_reaches_the_runtime(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    key = deploy(installation, project)
    named = {"x-project-id": str(project)}
    routes = [
        ("POST", "", 202),
        ("GET", "?status=running&limit=5", 200),
        ("GET", "/01ABC-DEF-456-789", 200),
        ("GET", "/01ABC-DEF-456-789/status", 200),
        ("GET", "/01ABC-DEF-456-789/results?partition=1&format=json", 200),
        ("GET", "/01ABC-DEF-456-789/results/chunks/3", 200),
        ("POST", "/01ABC-DEF-456-789/cancel", 200),
    ]
    for method, path, status in routes:
        runtime.answer = lambda request, status=status: httpx.Response(status, json={"a": 1})  # type: ignore[misc]
        sent = {"sql": "SELECT 1"} if (method, path) == ("POST", "") else None
        mark = "&" if "?" in path else "?"
        for url, headers in (
            (f"/v1/queries{path}", named),
            (f"/v1/queries{path}{mark}project_id={project}", {}),
            (f"/v1/projects/{project}/queries{path}", {}),
            (f"/v1/apps/{project}/queries{path}", {}),
        ):
            answer = caller.send(method, url, json=sent, headers=headers)
            assert (answer.status_code, answer.json()) == (status, {"a": 1}), url
            got = runtime.last
            assert str(got.url) == f"{ENDPOINT}/v1/queries{path}"
            assert got.method == method
            assert got.headers["x-api-key"] == key
            assert got.content == (
                json.dumps(sent, separators=(",", ":")).encode() if sent else b""
            )
            assert not {"authorization", "cookie", "x-project-id", "x-org-name"} & set(got.headers)


def test_headers_that_do_not_pass(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    key = deploy(installation, project)
    runtime.answer = lambda request: httpx.Response(
        200,
        json={},
        headers={
            "set-cookie": "a=b", "connection": "x-secret", "x-secret": "1", "server": "uvicorn",
            "access-control-allow-origin": "*", "location": "http://127.0.0.1/", "etag": '"1"',
        },
    )  # fmt: skip
    sent = {
        "x-api-key": "stolen", "cookie": "a=b", "connection": "x-secret", "x-secret": "1",
        "proxy-authorization": "Basic x", "x-forwarded-for": "1.2.3.4", "te": "trailers",
        "idempotency-key": "once", "accept": "application/json",
    }  # fmt: skip
    answer = caller.get(f"/v1/projects/{project}/queries", headers=sent)
    got = runtime.last.headers
    assert got["x-api-key"] == key
    assert got["idempotency-key"] == "once"
    assert not set(got) & {"cookie", "x-secret", "proxy-authorization", "x-forwarded-for", "te"}
    assert answer.headers["etag"] == '"1"'
    assert not set(answer.headers) & {
        "set-cookie", "x-secret", "access-control-allow-origin", "location", "server",
    }  # fmt: skip


WRONG_IDS = [
    "",
    "0",
    "-1",
    "1.0",
    "1e3",
    "9" * 30,
    "abc",
    "1 ",
    "1,2",
    "http://169.254.169.254",
    "é",
]


def test_wrong_project_ids_are_refused(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    for id_ in WRONG_IDS:
        for answer in (
            caller.get("/v1/queries", headers={"x-project-id": id_.encode()}),
            caller.get("/v1/queries", params={"project_id": id_}),
        ):
            assert answer.status_code == 400, id_
            assert answer.json()["code"] == "invalid_project_id"
    assert runtime.requests == []


def test_the_project_must_be_named_once(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    deploy(installation, project)
    assert caller.get("/v1/queries").json()["code"] == "project_required"
    both = caller.get(f"/v1/queries?project_id={project}", headers={"x-project-id": str(project)})
    assert both.status_code == 200
    differ = caller.get(f"/v1/queries?project_id={project}", headers={"x-project-id": "7777"})
    assert (differ.status_code, differ.json()["code"]) == (400, "invalid_project_id")
    for query in (f"project_id={project}&project_id=7777", f"project_id=7777&project_id={project}"):
        twice = caller.get(f"/v1/queries?{query}")
        assert (twice.status_code, twice.json()["code"]) == (400, "invalid_project_id")


OTHER_PATHS = [
    "/../sql", "/%2e%2e/sql", "/..%2fsql", "/a%2f..%2f..%2fsql", "/a b", "/a%00",
    "/a/results/chunks/x", "/a/b",
]  # fmt: skip


def test_other_routes_of_the_runtime_are_not_reached(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    deploy(installation, project)
    for path in OTHER_PATHS:
        answer = caller.get(f"/v1/projects/{project}/queries{path}")
        assert answer.status_code in (400, 404, 405), path
    assert runtime.requests == []


def test_projects_without_a_runtime(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    path = f"/v1/projects/{project}/queries"
    assert caller.get(path).json()["code"] == "project_not_deployed"
    for fields, code in (
        ({"endpoint": "file:///etc/passwd"}, "project_not_deployed"),
        ({"paused_at": installation.clock()}, "project_paused"),
    ):
        deploy(installation, project, **fields)
        answer = caller.get(path)
        assert (answer.status_code, answer.json()["code"]) == (409, code)
    deploy(installation, project, paused_at=None, deleted_at=installation.clock())
    assert caller.get(path).status_code == 404
    assert runtime.requests == []


def test_other_organizations_and_viewers(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    deploy(installation, project)
    stranger = installation.add_user()
    installation.add_org("umbrella", stranger)
    other = installation.sign_in(stranger)
    named = {"x-project-id": str(project)}
    assert other.get("/v1/queries", headers=named).status_code == 404
    assert other.post("/v1/queries", {"sql": "x"}, headers=named).status_code == 404
    assert runtime.requests == []
    acme = installation.rows(select(Project).where(Project.id == project))[0].org_id

    async def add(session: object) -> None:
        session.add(  # type: ignore[attr-defined]
            Member(
                org_id=acme, user_id=stranger.id, role=Role.VIEWER, created_at=installation.clock()
            )
        )

    installation.change(add)
    viewer = installation.sign_in(stranger, org="acme")
    assert viewer.get("/v1/queries", headers=named).status_code == 200
    assert viewer.post("/v1/queries", {"sql": "x"}, headers=named).status_code == 403


def test_failures_of_the_runtime(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    deploy(installation, project)
    path = f"/v1/projects/{project}/queries"

    def failing(exc: Exception) -> Answer:
        def answer(request: httpx.Request) -> httpx.Response:
            raise exc

        return answer

    table: list[tuple[Answer, int]] = [
        (failing(httpx.ConnectError("refused 10.0.0.7")), 503),
        (failing(httpx.ReadTimeout("slow")), 504),
        (failing(httpx.RemoteProtocolError("cut")), 503),
        (lambda request: httpx.Response(401, text="Unauthorized"), 503),
        (lambda request: httpx.Response(425, json={"error": "pending"}), 425),
        (lambda request: httpx.Response(302, headers={"location": "http://10.0.0.1/"}), 302),
    ]
    for answer, status in table:
        runtime.answer = answer
        got = caller.get(path, follow_redirects=False)
        assert got.status_code == status
        assert "10.0.0" not in got.text + str(got.headers)
    assert len(runtime.requests) == len(table)


def test_a_response_is_not_gathered_first(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    deploy(installation, project)
    asked: list[int] = []

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for number in range(300):
                asked.append(number)
                yield bytes(10_000)

    runtime.answer = lambda request: httpx.Response(200, stream=Endless())
    answer = caller.get(f"/v1/projects/{project}/queries/A/results")
    # More than a request may have: only bodies of requests are bounded.
    assert len(answer.content) == 3_000_000
    assert len(asked) == 300


def test_large_requests_are_refused(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    deploy(installation, project)
    answer = caller.post(f"/v1/projects/{project}/queries", {"sql": "x" * 1_100_000})
    assert answer.status_code == 413


def test_active_queries_are_bounded_by_the_plan(
    installation: Installation, runtime: FakeRuntime
) -> None:
    owner = installation.add_user()
    installation.add_org("small", owner, "community")
    caller = installation.sign_in(owner)
    project = new_project(caller)
    deploy(installation, project)
    path = f"/v1/projects/{project}/queries"
    running = 0

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(202, json={"query_id": "A"})
        is_running = request.url.params["status"] == "running"
        return httpx.Response(
            200, json={"queries": [], "total_count": running if is_running else 0}
        )

    runtime.answer = answer
    for _ in range(4):
        running += 1
        assert caller.post(path, {"sql": "x"}).status_code == 202
    assert [each.method for each in runtime.requests] == ["POST"] * 4
    refused = caller.post(path, {"sql": "x"})
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_queries")
    assert refused.headers["retry-after"] == "5"
    running = 1
    assert [caller.post(path, {"sql": "x"}).status_code for _ in range(3)] == [202, 202, 202]
    running = 4
    assert caller.post(path, {"sql": "x"}).status_code == 429
    # A submission that the runtime refuses does not count.
    running = 3
    runtime.answer = lambda request: (
        httpx.Response(400, json={"error": "wrong"})
        if request.method == "POST"
        else answer(request)
    )
    assert [caller.post(path, {"sql": "x"}).status_code for _ in range(3)] == [400, 400, 400]


def test_submissions_are_recorded_once(
    installation: Installation, runtime: FakeRuntime, caller: Caller
) -> None:
    project = new_project(caller)
    deploy(installation, project)
    before = len(installation.rows(select(Activity)))
    path = f"/v1/projects/{project}/queries"
    runtime.answer = lambda request: httpx.Response(202, json={})
    caller.post(path, {"sql": "SELECT 'private'"})
    runtime.answer = lambda request: httpx.Response(400, json={"error": "wrong"})
    caller.post(path, {"sql": "SELECT 'private'"})
    runtime.answer = lambda request: httpx.Response(200, json={})
    caller.post(f"{path}/A-1/cancel")
    caller.get(path)
    entries = installation.rows(select(Activity).order_by(Activity.id))[before:]
    assert [(each.action, each.resource_id, each.outcome) for each in entries] == [
        ("submit_query_of_project", "", "succeeded"),
        ("submit_query_of_project", path, "refused"),
        ("cancel_query_of_project", "A-1", "succeeded"),
    ]
    assert all("private" not in str(vars(each)) for each in entries)
