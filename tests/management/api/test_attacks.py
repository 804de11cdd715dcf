"""Hostile texts and bodies on every route: no failure, nothing changed, nothing injected."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from sqlalchemy import func, select

from caraway_core.process import logs
from caraway_management.api.gates import MOST_BODY_BYTES
from caraway_management.store.tables import Member, Org, Project, User
from tests.kit import full_organization, management
from tests.kit.full_organization import FullOrganization
from tests.kit.management import Installation
from tests.kit.management_routes import RouteRequest, parameters, requests

ROUTES = list(requests(management.declared_app()))
WITH_OBJECTS = [
    route
    for route in ROUTES
    if isinstance(route.body, dict)
    # RFC 6749 and RFC 7591 say that unknown parameters are ignored; a query goes to the runtime.
    and route.name not in ("create_access_token", "register_oauth_client")
    and "queries" not in route.path
]
HOSTILE = "x'; DROP TABLE projects; --\r\nX-Evil: 1\x1b[2J\u202e<script>%00../\"{{7*7}}"
UNKNOWN = {
    "id": 1, "org_id": 1, "user_id": 1, "is_administrator": True, "role": "owner", "plan": "x",
    "created_at": "2020-01-01T00:00:00Z", "deleted_at": None, "endpoint": "http://evil.example",
    "revoked_at": None, "value_hash": "x", "paused_at": None, "__class__": "x",
}  # fmt: skip


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)]
)
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """An installation that the tests share."""
    folder = tmp_path_factory.mktemp("attacks")
    with full_organization.shared_installation(request, folder) as made:
        yield made


@pytest.fixture(scope="module")
def acme(installation: Installation) -> FullOrganization:
    """An organization with one of everything, whose owner attacks."""
    return full_organization.add_full_organization(installation)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The JSON log of the service, at the finest level."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logs.JsonFormatter())
    logger = logging.getLogger("caraway_management")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield text
    logger.removeHandler(handler)
    logger.setLevel(before)


def poisoned(value: Any, text: str) -> Any:
    """Return a body with the text in place of all its texts."""
    if isinstance(value, dict):
        return {key: poisoned(each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [poisoned(each, text) for each in value]
    return text if isinstance(value, str) else value


def counts(installation: Installation) -> list[int]:
    tables = (Project, Org, User, Member)
    return [installation.rows(select(func.count()).select_from(table))[0] for table in tables]


@pytest.mark.parametrize("text", [HOSTILE, "\x00", "9" * 5_000], ids=["injection", "nul", "long"])
def test_hostile_texts_in_every_place_are_refused(
    installation: Installation, acme: FullOrganization, log: io.StringIO, text: str
) -> None:
    before, count, wrong = acme.state(), counts(installation), []
    for route in ROUTES:
        body = poisoned(route.body, text)
        places: list[tuple[str, Any, dict[str, str]]] = []
        if names := parameters(route.path):
            places.append((route.at(dict.fromkeys(names, quote(text, safe=""))), route.body, {}))
        if body != route.body:
            places.append((route.at(acme.ids), body, {}))
        if route.method == "GET":
            places.append((route.at(acme.ids), None, dict.fromkeys(queries(route), text)))
        for path, given, query in places:
            answer = acme.owner.send(
                route.method, path, json=given, params=query, headers={"x-project-id": "1"}
            )
            # No runtime is there to take a query.
            is_away = answer.status_code == 503 and "queries" in route.path
            is_injected = "x-evil" in answer.headers or "\x1b" in answer.text
            is_changed = route.is_change and answer.is_success
            if (answer.status_code >= 500 and not is_away) or is_injected or is_changed:
                wrong.append((route.title, answer.status_code, answer.text[:300]))
    assert wrong == []
    assert acme.state() == before
    assert counts(installation) == count
    lines = log.getvalue().splitlines()
    assert lines
    for line in lines:
        assert isinstance(json.loads(line), dict) and "\x1b" not in line


def test_names_in_headers_are_refused(installation: Installation, acme: FullOrganization) -> None:
    for name in ("a b", "a;b", "a\tb", "é", "a" * 256, "", " ", "a,b", "'; --", "a\x1b[2J"):
        answer = acme.owner.get("/v1/limits", headers={"x-org-name": name.encode()})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_org_assertion"), name
    # Sent twice, a header could name one organization to a proxy and another one here.
    for pair in (("acme", "umbrella"), ("umbrella", "acme"), ("acme", "acme"), ("", "acme")):
        headers = [("authorization", f"Bearer {acme.owner.token}")]
        headers += [("x-org-name", each) for each in pair]
        answer = installation.client.get("/v1/limits", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_org_assertion"), pair
    around = acme.owner.get("/v1/limits", headers={"x-org-name": b" acme\t "})
    assert around.status_code == 200
    given = "a\x1b[2Jb"
    answer = acme.owner.get("/v1/limits", headers={"x-request-id": given.encode()})
    assert answer.headers["x-request-id"] != given


def test_no_path_is_redirected_to_a_host_that_the_request_names(acme: FullOrganization) -> None:
    for path in ("/v1/projects/", "/v1/limits/", "/v1/apps/1/"):
        answer = acme.owner.get(path, headers={"host": "evil.example"}, follow_redirects=False)
        assert (answer.status_code, answer.json()) == (404, {"error": "no such route"})


@pytest.mark.parametrize("route", WITH_OBJECTS, ids=lambda route: route.title)
def test_unknown_fields_are_refused(acme: FullOrganization, route: RouteRequest) -> None:
    known = properties(operation(route))
    unknown = {key: value for key, value in UNKNOWN.items() if key not in known}
    answer = acme.owner.send(route.method, route.at(acme.ids), json=route.body | unknown)
    assert answer.status_code == 400, answer.text
    assert set(unknown) <= set(answer.json()["details"]["fieldErrors"])


def operation(route: RouteRequest) -> dict[str, Any]:
    """Return the description of a route."""
    found: dict[str, Any] = management.declared_app().openapi()["paths"][route.path]
    described: dict[str, Any] = found[route.method.lower()]
    return described


def queries(route: RouteRequest) -> list[str]:
    """Return the query parameters of a route."""
    given = operation(route).get("parameters", ())
    return [each["name"] for each in given if each["in"] == "query"]


def properties(operation: dict[str, Any]) -> set[str]:
    """Return the fields of the body of an operation."""
    schemas = management.declared_app().openapi()["components"]["schemas"]
    found, pending = set[str](), [operation["requestBody"]["content"]["application/json"]["schema"]]
    while pending:
        schema = pending.pop()
        found |= set(schema.get("properties", ()))
        pending += [*schema.get("anyOf", ())]
        if name := schema.get("$ref"):
            pending.append(schemas[name.rpartition("/")[2]])
    return found


BODIES = {
    "deep": b'{"name": "deep", "tags": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
    "deep lists": b"[" * 400_000,
    "many values": b'{"name": "many", "tags": [' + b"1," * 200_000 + b"1]}",
    "twice": b'{"name": "first-name", "name": "other-name"}',
    "infinite": b'{"name": "infinite", "replicas": 1e400}',
    "nan": b'{"name": "nan-nan", "replicas": NaN}',
    "digits": b'{"name": "digits", "replicas": ' + b"9" * 100_000 + b"}",
    "surrogate": b'{"name": "half", "description": "\\ud800"}',
    "not utf-8": b'{"name": "\xff\xfe"}',
    "cut off": b'{"name": "cut-off"',
    "empty": b"",
}


@pytest.mark.parametrize("kind", BODIES)
def test_hostile_json_is_refused(
    installation: Installation, acme: FullOrganization, kind: str
) -> None:
    before = counts(installation)
    for path in ("/v1/projects", "/v1/invitations"):
        answer = acme.owner.post(
            path, content=BODIES[kind], headers={"content-type": "application/json"}
        )
        assert answer.status_code in (400, 413), answer.text[:300]
        assert answer.json()["error"] and len(answer.content) < 2_000
    assert counts(installation) == before


def test_a_body_has_at_most_one_mebibyte_even_without_a_length(
    installation: Installation, acme: FullOrganization
) -> None:
    path = f"/v1/projects/{acme.ids['projectId']}"
    head = b"version: v1\nkind: Caraway\nname: shop\n"

    def sent(size: int) -> httpx2.Response:
        text = head + b"# a comment\n" * ((size - len(head) - 100) // 12)
        body = json.dumps({"manifest": text.decode()}).encode()
        chunks = (body[start : start + 65_536] for start in range(0, len(body), 65_536))
        return acme.owner.put(path, content=chunks, headers={"content-type": "application/json"})

    big = sent(MOST_BODY_BYTES - 200_000)
    assert big.status_code == 200, big.text[:300]
    assert len(acme.owner.get(path).json()["config"]["manifest"]) > 700_000
    assert sent(2 * MOST_BODY_BYTES).status_code == 413
