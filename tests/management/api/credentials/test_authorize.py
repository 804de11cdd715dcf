import base64
import hashlib
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from sqlalchemy import select

from caraway_management.domain.scopes import Role
from caraway_management.store.tables import Activity, Token
from tests.kit.management import PUBLIC_URL, Caller, Installation

PASSWORD = "correct horse battery"
VERIFIER = "a" * 43
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
)
REDIRECT = "http://127.0.0.1:5555/callback"


class Program:
    """An MCP client: it registers, sends the user to the page, and redeems the code."""

    def __init__(self, installation: Installation, name: str = "agent") -> None:
        self.client = installation.client
        self.anonymous = installation.anonymous()
        body = {"client_name": name, "redirect_uris": [REDIRECT], "logo_uri": "https://x"}
        answer = self.anonymous.post("/api/oauth/register", body)
        assert answer.status_code == 201, answer.text
        self.id = answer.json()["client_id"]
        assert answer.json()["token_endpoint_auth_method"] == "none"
        assert "client_secret" not in answer.json()

    def query(self, **changed: str | None) -> dict[str, str]:
        query: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": REDIRECT,
            "scope": "apps:read members:read",
            "state": "s1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": f"{PUBLIC_URL}/mcp",
        }
        return {name: text for name, text in (query | changed).items() if text is not None}

    def show(self, **changed: str | None) -> httpx2.Response:
        return self.client.get(
            "/oauth/authorize", params=self.query(**changed), follow_redirects=False
        )

    def decide(self, decision: str, **changed: str | None) -> httpx2.Response:
        page = self.show(**changed)
        assert page.status_code == 200, page.text
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text.partition("<label")[0]))
        fields |= {"decision": decision} | {k: v for k, v in changed.items() if k == "org_id"}
        return self.client.post("/oauth/authorize", data=fields, follow_redirects=False)

    def code(self, **changed: str | None) -> str:
        answer = self.decide("approve", **changed)
        assert answer.status_code == 303, answer.text
        sent = sent_back(answer)
        assert (sent["state"], sent["iss"]) == ("s1", PUBLIC_URL)
        return sent["code"]

    def redeem(self, code: str, **changed: str) -> httpx2.Response:
        body = {
            "grant_type": "authorization_code",
            "client_id": self.id,
            "code": code,
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
        }
        return self.anonymous.send("POST", "/api/oauth/token", data=body | changed)

    def refresh(self, token: str, **changed: str) -> httpx2.Response:
        body = {"grant_type": "refresh_token", "client_id": self.id, "refresh_token": token}
        return self.anonymous.send("POST", "/api/oauth/token", data=body | changed)


def sent_back(answer: httpx2.Response) -> dict[str, str]:
    """Return the parameters of a redirect to the program."""
    assert answer.headers["location"].startswith(REDIRECT)
    parsed = parse_qs(urlsplit(answer.headers["location"]).query)
    return {name: values[0] for name, values in parsed.items()}


def sign_in(installation: Installation) -> None:
    """Sign the browser of the test in as a new user, who owns an organization."""
    user = installation.add_user("ada")
    installation.add_org("acme", user)
    installation.sign_in(user).put("/v1/whoami/password", {"password": PASSWORD})
    answer = installation.client.post(
        "/sign-in",
        data={"username": "ada", "password": PASSWORD, "return_to": "/x?a=b"},
        follow_redirects=False,
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "./x?a=b")


def call(installation: Installation, token: str, path: str = "/v1/limits") -> httpx2.Response:
    cookies = dict(installation.client.cookies)
    installation.client.cookies.clear()
    answer = Caller(installation.client, token).get(path)
    installation.client.cookies.update(cookies)
    return answer


def test_a_program_acts_for_a_user_who_approves(installation: Installation) -> None:
    program = Program(installation, "<b>agent</b>")
    page = program.show()
    assert page.status_code == 303
    back = parse_qs(urlsplit(page.headers["location"]).query)["return_to"][0]
    assert back.startswith("/oauth/authorize?response_type=code&client_id=")
    sign_in(installation)
    page = program.show()
    assert "<b>agent</b>" not in page.text and "&lt;b&gt;agent" in page.text
    assert "form-action 'self' http://127.0.0.1:5555;" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"
    body = program.redeem(program.code()).json()
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 3600)
    assert body["scope"] == "apps:read members:read"
    assert call(installation, body["access_token"]).status_code == 200
    me = call(installation, body["access_token"], "/v1/whoami").json()
    assert (me["kind"], me["name"]) == ("user", "ada")
    assert me["scopes"] == ["apps:read", "members:read"]
    refused = call(installation, body["access_token"], "/v1/tokens")
    assert refused.json()["code"] == "insufficient_scope"
    actions = installation.rows(select(Activity.action))
    assert "grant_access" in actions


def test_a_user_revokes_a_grant_in_the_list_of_tokens(installation: Installation) -> None:
    program = Program(installation)
    sign_in(installation)
    body = program.redeem(program.code()).json()
    listed = installation.client.get("/v1/tokens", params={"limit": 1}).json()["tokens"][0]
    assert (listed["kind"], listed["name"]) == ("oauth", "agent")
    csrf = installation.client.get("/v1/sessions/current").json()["csrf_token"]
    path = f"/v1/tokens/{listed['id']}"
    assert installation.client.delete(path, headers={"x-csrf-token": csrf}).status_code == 204
    assert call(installation, body["access_token"]).status_code == 401
    assert program.refresh(body["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_user_denies(installation: Installation) -> None:
    program = Program(installation)
    sign_in(installation)
    assert sent_back(program.decide("deny"))["error"] == "access_denied"


def test_a_grant_may_be_for_one_organization(installation: Installation) -> None:
    program = Program(installation)
    sign_in(installation)
    stranger = installation.add_user()
    other = installation.add_org("umbrella", stranger)
    org_id = installation.client.get("/v1/orgs").json()["orgs"][0]["id"]
    token = program.redeem(program.code(org_id=str(org_id))).json()["access_token"]
    assert call(installation, token, "/v1/whoami").json()["org"]["name"] == "acme"
    assert program.decide("approve", org_id=str(other.id)).json()["code"] == "org_forbidden"


def test_a_code_that_is_sent_again_ends_the_grant(installation: Installation) -> None:
    program = Program(installation)
    sign_in(installation)
    code = program.code()
    body = program.redeem(code).json()
    assert call(installation, body["access_token"]).status_code == 200
    assert program.redeem(code).json()["error"] == "invalid_grant"
    assert call(installation, body["access_token"]).status_code == 401
    assert program.refresh(body["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_refresh_token_works_once(installation: Installation) -> None:
    program = Program(installation)
    sign_in(installation)
    first = program.redeem(program.code()).json()
    assert program.refresh(first["refresh_token"], scope="*").json()["error"] == "invalid_scope"
    second = program.refresh(first["refresh_token"], scope="apps:read").json()
    assert second["scope"] == "apps:read"
    assert call(installation, second["access_token"]).status_code == 200
    # Its second use means that there is a copy: nothing of the grant is valid from then on.
    assert program.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert program.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"
    assert call(installation, second["access_token"]).status_code == 401


def test_codes_and_refresh_tokens_expire(installation: Installation) -> None:
    program = Program(installation)
    sign_in(installation)
    code = program.code()
    kept = program.redeem(program.code()).json()
    installation.clock.advance(minutes=2)
    assert program.redeem(code).json()["error"] == "invalid_grant"
    installation.clock.advance(days=30)
    assert program.refresh(kept["refresh_token"]).json()["error"] == "invalid_grant"


def test_codes_of_another_program_or_verifier_are_refused(installation: Installation) -> None:
    program, other = Program(installation), Program(installation)
    sign_in(installation)
    code = program.code()
    for answer in (
        program.redeem(code, code_verifier="b" * 43),
        program.redeem(code, code_verifier="short"),
        program.redeem(code, redirect_uri="http://127.0.0.1:5556/callback"),
        other.redeem(code),
        program.redeem("cwa_wrong"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert program.redeem(code, resource="https://other").json()["error"] == "invalid_target"
    refresh = program.redeem(code).json()["refresh_token"]
    assert other.refresh(refresh).json()["error"] == "invalid_grant"
    missing = program.redeem("")
    assert missing.json()["error"] == "invalid_request"


def test_a_deleted_user_grants_nothing_more(installation: Installation) -> None:
    program = Program(installation)
    user = installation.add_user("eve")
    admin = installation.sign_in(installation.add_user("root", is_administrator=True))
    installation.sign_in(user).put("/v1/whoami/password", {"password": PASSWORD})
    installation.client.post("/sign-in", data={"username": "eve", "password": PASSWORD})
    code, kept = program.code(), program.redeem(program.code()).json()
    admin.delete(f"/v1/users/{user.id}")
    assert program.redeem(code).json()["error"] == "invalid_grant"
    assert program.refresh(kept["refresh_token"]).json()["error"] == "invalid_grant"
    assert call(installation, kept["access_token"]).status_code == 401


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/callback",
        "http://127.0.0.1:5555/other",
        "http://127.0.0.1.evil.example/callback",
        "http://127.0.0.1:5555@evil.example/callback",
        "http://127.0.0.1:5555/callback#x",
        "http://127.0.0.1:x/callback",
        "//127.0.0.1/callback",
        "javascript:alert(1)",
        "",
    ],
)
def test_users_are_sent_nowhere_else(installation: Installation, uri: str) -> None:
    program = Program(installation)
    answer = program.show(redirect_uri=uri)
    assert answer.status_code == 400 and "location" not in answer.headers
    assert program.show(client_id="cc_none").status_code == 400


def test_a_loopback_address_may_have_another_port(installation: Installation) -> None:
    answer = Program(installation).show(redirect_uri="http://127.0.0.1:7777/callback")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("../sign-in?")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"scope": "root"}, "invalid_scope"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": f"{PUBLIC_URL}.evil.example"}, "invalid_target"),
    ],
)
def test_wrong_requests_go_back_to_the_program(
    installation: Installation, changed: dict[str, str | None], error: str
) -> None:
    sent = sent_back(Program(installation).show(**changed))
    assert (sent["error"], sent["state"], sent["iss"]) == (error, "s1", PUBLIC_URL)


def test_approval_needs_the_page(installation: Installation) -> None:
    program = Program(installation)
    fields = {**program.query(), "decision": "approve"}
    anonymous = installation.client.post("/oauth/authorize", data=fields)
    assert anonymous.status_code == 401
    sign_in(installation)
    forged = installation.client.post("/oauth/authorize", data=fields)
    assert forged.json()["code"] == "csrf_mismatch"
    other = installation.client.post(
        "/oauth/authorize", data=fields, headers={"sec-fetch-site": "cross-site"}
    )
    assert other.json()["code"] == "csrf_mismatch"
    assert installation.rows(select(Token).where(Token.kind == "oauth")) == []


@pytest.mark.parametrize(
    "body",
    [
        {"redirect_uris": []},
        {"redirect_uris": ["http://example.com/callback"]},
        {"redirect_uris": ["https://user@example.com/"]},
        {"redirect_uris": ["https://example.com/#f"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": ["data:text/html,x"]},
        {"redirect_uris": ["https://example.com/a b"]},
        {"redirect_uris": ["https:///x"]},
        {"redirect_uris": ["https://e.com/"] * 11},
        {"redirect_uris": ["https://e.com/" + "x" * 2_000]},
    ],
)
def test_unsafe_redirects_are_not_registered(
    installation: Installation, body: dict[str, Any]
) -> None:
    answer = installation.anonymous().post("/api/oauth/register", body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")


def test_registrations_are_bounded(installation: Installation) -> None:
    anonymous = installation.anonymous()
    body = {"redirect_uris": ["https://example.com/callback"]}
    statuses = [anonymous.post("/api/oauth/register", body).status_code for _ in range(21)]
    assert statuses == [201] * 20 + [429]
    named = anonymous.post("/api/oauth/register", body | {"client_name": "a\nb"})
    assert named.json()["error"] == "invalid_client_metadata"


@pytest.mark.parametrize("path", ["https://evil.example", "//evil", "/\\evil", "x", "/a\nb", ""])
def test_sign_in_goes_back_to_this_service_only(installation: Installation, path: str) -> None:
    assert installation.client.get("/sign-in", params={"return_to": path}).status_code == 400
    form = {"username": "ada", "password": PASSWORD, "return_to": path}
    assert installation.client.post("/sign-in", data=form).status_code == 400


def test_the_sign_in_page_refuses_and_escapes(installation: Installation) -> None:
    page = installation.client.get("/sign-in", params={"return_to": '/"><script>'})
    assert page.status_code == 200 and "<script>" not in page.text
    form = {"username": "ada", "password": "wrong", "return_to": "/"}
    statuses = [installation.client.post("/sign-in", data=form).status_code for _ in range(6)]
    assert statuses == [401] * 5 + [429]
    assert installation.client.post("/sign-in", content=b"\xff").status_code == 400
    crossed = installation.client.post(
        "/sign-in", data=form, headers={"sec-fetch-site": "cross-site"}
    )
    assert crossed.status_code == 403


def test_metadata_names_the_endpoints(installation: Installation) -> None:
    anonymous = installation.anonymous()
    server = anonymous.get("/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == PUBLIC_URL
    assert server["code_challenge_methods_supported"] == ["S256"]
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint", "jwks_uri"):
        path = server[name].removeprefix(PUBLIC_URL)
        assert anonymous.get(path).status_code in (200, 400, 405), path
    for suffix in ("", "/mcp"):
        described = anonymous.get(f"/.well-known/oauth-protected-resource{suffix}").json()
        assert described["resource"] == PUBLIC_URL + suffix
        assert described["authorization_servers"] == [PUBLIC_URL]


def test_a_grant_does_not_outlive_the_membership(installation: Installation) -> None:
    program = Program(installation)
    owner = installation.add_user()
    org = installation.add_org("umbrella", owner)
    viewer = installation.add_member(org, Role.VIEWER, "eve")
    installation.sign_in(viewer).put("/v1/whoami/password", {"password": PASSWORD})
    installation.client.post("/sign-in", data={"username": "eve", "password": PASSWORD})
    token = program.redeem(program.code(scope="*")).json()["access_token"]
    assert call(installation, token).status_code == 200
    installation.client.cookies.clear()
    refused = Caller(installation.client, token).get("/v1/oauth-clients")
    assert refused.json()["code"] == "forbidden"
