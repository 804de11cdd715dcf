from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc.jwk import ECKey, RSAKey
from sqlalchemy import select, update
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials.settings import CredentialSettings
from caraway_management.store.tables import Identity, SignIn, User
from tests.kit import management
from tests.kit.management import BEGAN, Caller, Installation
from tests.kit.oidc_issuer import ISSUER, Issuer

START, CALLBACK = "/auth/oidc", "/auth/oidc/callback"


@pytest.fixture
def issuer() -> Issuer:
    return Issuer(lambda: BEGAN)


@pytest.fixture
def adds_users() -> bool:
    """True if the installation adds users that it does not know."""
    return False


@pytest.fixture
def installation(prepared_url: URL, issuer: Issuer, adds_users: bool) -> Iterator[Installation]:
    """A service whose users sign in by the issuer."""
    oidc = issuer.oidc(adds_users=adds_users)
    with management.installation(prepared_url, is_prepared=True, oidc=oidc) as made:
        yield made


def add_user(installation: Installation, name: str, email: str | None) -> User:
    user = installation.add_user(name)

    async def change(session: AsyncSession) -> None:
        await session.execute(update(User).where(User.id == user.id).values(email=email))

    installation.change(change)
    return user


def begin(installation: Installation, **query: str) -> str:
    answer = installation.client.get(START, params=query, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def finish(installation: Installation, brought: dict[str, str]) -> httpx2.Response:
    return installation.client.get(CALLBACK, params=brought, follow_redirects=False)


def sign_in(installation: Installation, issuer: Issuer, **query: str) -> httpx2.Response:
    return finish(installation, issuer.authorize(begin(installation, **query)))


def test_a_verified_address_signs_its_user_in(installation: Installation, issuer: Issuer) -> None:
    user = add_user(installation, "ada", "ada@example.com")
    issuer.claims |= {"email": "Ada@Example.com", "email_verified": True}
    answer = sign_in(installation, issuer, return_to="/auth/token?code=X")
    assert (answer.status_code, answer.headers["location"]) == (303, "../../auth/token?code=X")
    assert "HttpOnly" in answer.headers["set-cookie"]
    me = installation.client.get("/v1/whoami").json()
    assert (me["kind"], me["user"]["id"]) == ("session", user.id)
    # From then on the subject counts, whatever the address.
    issuer.claims = {"sub": "u1", "email": "other@example.com", "email_verified": True}
    assert sign_in(installation, issuer).status_code == 303
    assert installation.client.get("/v1/whoami").json()["user"]["id"] == user.id
    assert installation.rows(select(Identity.subject)) == ["u1"]


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "ada@example.com"},
        {"email": "ada@example.com", "email_verified": False},
        {"email": "ada@example.com", "email_verified": "true"},
        {"email": "two@example.com", "email_verified": True},
        {"email": "gone@example.com", "email_verified": True},
        {"email": ["ada@example.com"], "email_verified": True},
        {"preferred_username": "ada"},
    ],
)
def test_other_addresses_sign_nobody_in(
    installation: Installation, issuer: Issuer, claims: dict[str, Any]
) -> None:
    add_user(installation, "ada", "ada@example.com")
    add_user(installation, "two", "two@example.com")
    add_user(installation, "two2", "two@example.com")
    gone = add_user(installation, "gone", "gone@example.com")

    async def delete(session: AsyncSession) -> None:
        await session.execute(update(User).where(User.id == gone.id).values(deleted_at=BEGAN))

    installation.change(delete)
    issuer.claims |= claims
    answer = sign_in(installation, issuer)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert installation.rows(select(Identity.id)) == []


@pytest.mark.parametrize("adds_users", [True])
def test_unknown_users_are_added_if_the_installation_says_so(
    installation: Installation, issuer: Issuer
) -> None:
    add_user(installation, "ada", None)
    issuer.claims |= {"preferred_username": "Ada!", "email": "a@b.c", "email_verified": True}
    assert sign_in(installation, issuer).status_code == 303
    user = installation.client.get("/v1/whoami").json()["user"]
    assert (user["username"], user["email"]) == ("Ada-2", "a@b.c")
    assert (user["is_administrator"], user["has_password"]) == (False, False)


def test_a_signed_in_user_links_an_identity(installation: Installation, issuer: Issuer) -> None:
    user = add_user(installation, "ada", None)
    caller = installation.sign_in(user)
    caller.put("/v1/whoami/password", {"password": "correct horse battery"})
    asked = installation.client.get(START, params={"link": "true"}, follow_redirects=False)
    assert asked.headers["location"].startswith("../sign-in?return_to=")
    body = {"username": "ada", "password": "correct horse battery"}
    installation.client.post("/v1/sessions", json=body)
    assert sign_in(installation, issuer, link="true").status_code == 303
    installation.client.cookies.clear()
    sign_in(installation, issuer)
    assert installation.client.get("/v1/whoami").json()["user"]["id"] == user.id
    # The identity of one user cannot become that of another.
    other = installation.add_user("eve")
    installation.sign_in(other).put("/v1/whoami/password", {"password": body["password"]})
    installation.client.cookies.clear()
    installation.client.post("/v1/sessions", json=body | {"username": "eve"})
    assert sign_in(installation, issuer, link="true").status_code == 409


def test_a_deleted_user_is_not_signed_in(installation: Installation, issuer: Issuer) -> None:
    user = add_user(installation, "ada", "ada@example.com")
    issuer.claims |= {"email": "ada@example.com", "email_verified": True}
    sign_in(installation, issuer)
    admin = installation.sign_in(installation.add_user("root", is_administrator=True))
    assert admin.delete(f"/v1/users/{user.id}").status_code == 204
    assert installation.client.get("/v1/whoami").status_code == 401
    assert sign_in(installation, issuer).status_code == 403


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://other.example"},
        {"iss": None},
        {"aud": "another client"},
        {"aud": ["caraway", "another"]},
        {"aud": ["caraway", "another"], "azp": "another"},
        {"aud": None},
        {"nonce": "other"},
        {"nonce": None},
        {"exp": int(BEGAN.timestamp()) - 61},
        {"exp": None},
        {"iat": int(BEGAN.timestamp()) + 61},
        {"nbf": int(BEGAN.timestamp()) + 61},
        {"sub": ""},
        {"sub": None},
        {"sub": 7},
        {"sub": "x" * 300},
    ],
)
def test_wrong_id_tokens_sign_nobody_in(
    installation: Installation, issuer: Issuer, claims: dict[str, Any]
) -> None:
    add_user(installation, "ada", "ada@example.com")
    issuer.claims |= {"email": "ada@example.com", "email_verified": True} | claims
    answer = sign_in(installation, issuer)
    assert answer.status_code == 403, answer.text
    assert "caraway_session" not in installation.client.cookies


def test_clocks_may_differ_a_little(installation: Installation, issuer: Issuer) -> None:
    add_user(installation, "ada", "ada@example.com")
    ahead = int(BEGAN.timestamp()) + 59
    issuer.claims |= {"email": "ada@example.com", "email_verified": True, "iat": ahead}
    assert sign_in(installation, issuer).status_code == 303


def test_tokens_of_other_keys_sign_nobody_in(installation: Installation, issuer: Issuer) -> None:
    add_user(installation, "ada", "ada@example.com")
    issuer.claims |= {"email": "ada@example.com", "email_verified": True}
    # A key that rotates is read again.
    issuer.key, issuer.algorithm = ECKey.generate_key("P-256", {"kid": "two"}), "ES256"
    assert sign_in(installation, issuer).status_code == 303
    installation.client.cookies.clear()
    brought = issuer.authorize(begin(installation))
    published = issuer._public()
    issuer.key, issuer.algorithm = RSAKey.generate_key(2048, {"kid": "two"}), "RS256"
    issuer._public = lambda: published  # type: ignore[method-assign]
    assert finish(installation, brought).status_code == 403


def test_only_the_browser_that_began_finishes(installation: Installation, issuer: Issuer) -> None:
    add_user(installation, "ada", "ada@example.com")
    issuer.claims |= {"email": "ada@example.com", "email_verified": True}
    brought = issuer.authorize(begin(installation))
    state = dict(installation.client.cookies)
    installation.client.cookies.clear()
    refused = finish(installation, brought)
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf_mismatch")
    assert finish(installation, {"code": "x"}).status_code in (400, 403)
    installation.client.cookies.update(state)
    other = brought | {"iss": "https://other.example"}
    assert finish(installation, other).status_code == 403
    # The state is used up by a wrong answer, too.
    assert finish(installation, brought).status_code in (400, 403)
    assert installation.rows(select(SignIn.state_hash)) == []


def test_an_answer_works_once_and_not_late(installation: Installation, issuer: Issuer) -> None:
    add_user(installation, "ada", "ada@example.com")
    issuer.claims |= {"email": "ada@example.com", "email_verified": True}
    brought = issuer.authorize(begin(installation))
    cookies = dict(installation.client.cookies)
    assert finish(installation, brought).status_code == 303
    installation.client.cookies.clear()
    installation.client.cookies.update(cookies)
    assert finish(installation, brought).status_code == 400
    installation.client.cookies.clear()
    late = issuer.authorize(begin(installation))
    installation.clock.advance(minutes=10)
    assert finish(installation, late).status_code == 400


@pytest.mark.parametrize(
    ("path", "answer", "status"),
    [
        ("/token", (400, b"{}"), 403),
        ("/token", (500, b""), 502),
        ("/token", (302, b""), 502),
        ("/token", (200, b"<html>"), 502),
        ("/token", (200, b"[1]"), 502),
        ("/token", (200, b"{}"), 502),
        ("/token", (200, b'{"id_token": "a.b.c"}'), 403),
        ("/token", (200, b" " * 2_000_000), 502),
        ("/keys", (200, b'{"keys": []}'), 502),
        ("/keys", (200, b'{"keys": [{"kty": "oct", "k": "AAAA"}]}'), 502),
    ],
)
def test_faults_of_the_issuer_are_said(
    installation: Installation,
    issuer: Issuer,
    path: str,
    answer: tuple[int, bytes],
    status: int,
) -> None:
    issuer.answers[path] = answer
    refused = sign_in(installation, issuer)
    assert refused.status_code == status, refused.text
    assert "identity provider" in refused.json()["error"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": f"{ISSUER}/"},
        {"token_endpoint": "http://issuer.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": None},
    ],
)
def test_wrong_metadata_is_refused(
    installation: Installation, issuer: Issuer, metadata: dict[str, Any]
) -> None:
    issuer.metadata = metadata
    assert installation.client.get(START, follow_redirects=False).status_code == 502


def test_the_user_is_sent_back_to_this_service_only(installation: Installation) -> None:
    for path in ("https://evil.example", "//evil.example", "/\\evil.example"):
        answer = installation.client.get(START, params={"return_to": path}, follow_redirects=False)
        assert answer.status_code == 400


BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_gets_a_page_that_leads_back(installation: Installation, issuer: Issuer) -> None:
    place = "/#/projects/7?a=%22%3E"
    brought = issuer.authorize(begin(installation, return_to=place))
    refused = installation.client.get(
        CALLBACK, params={"state": brought["state"], "error": "access_denied"}, headers=BROWSER
    )
    assert refused.status_code == 403
    assert refused.headers["content-type"].startswith("text/html")
    assert "script" not in refused.headers["content-security-policy"]
    assert "did not sign you in" in refused.text and f'href="../..{place}"' in refused.text
    # The state is used up; where the user came from is not known any more.
    again = installation.client.get(CALLBACK, params=brought, headers=BROWSER)
    assert (again.status_code, 'href="../../"' in again.text) == (400, True)
    issuer.metadata = {"issuer": "https://other.example"}
    installation.clock.advance(minutes=10)
    for path, status, back in ((place, 502, f"..{place}"), ("https://evil.example", 400, "../")):
        away = installation.client.get(START, params={"return_to": path}, headers=BROWSER)
        assert (away.status_code, f'href="{back}"' in away.text) == (status, True)
        assert "evil" not in away.text


def test_the_way_back_may_be_below_a_prefix(tmp_path: Path, issuer: Issuer) -> None:
    url = management.prepared_embedded_url(tmp_path)
    settings = CredentialSettings("http://testserver/mgmt")
    oidc = issuer.oidc()
    with management.installation(url, is_prepared=True, credentials=settings, oidc=oidc) as made:
        begun = made.client.get(START, headers=BROWSER, follow_redirects=False)
        assert "Path=/mgmt/auth/oidc" in begun.headers["set-cookie"]
        assert "%2Fmgmt%2Fauth%2Foidc%2Fcallback" in begun.headers["location"]
        refused = made.client.get(CALLBACK, headers=BROWSER)
        assert 'href="../../"' in refused.text


def test_the_console_asks_which_ways_to_sign_in_there_are(
    installation: Installation, tmp_path: Path
) -> None:
    assert installation.client.get("/sign-in/ways").json() == {"password": True, "oidc": True}
    url = management.prepared_embedded_url(tmp_path)
    with management.installation(url, is_prepared=True) as other:
        assert other.client.get("/sign-in/ways").json() == {"password": True, "oidc": False}


def test_metadata_are_kept_for_some_minutes(installation: Installation, issuer: Issuer) -> None:
    for _ in range(2):
        begin(installation)
    assert issuer.calls == ["/.well-known/openid-configuration"]
    installation.clock.advance(minutes=10)
    begin(installation)
    assert len(issuer.calls) == 2


def test_the_link_on_the_page_leads_to_the_issuer(installation: Installation) -> None:
    page = installation.client.get("/sign-in", params={"return_to": "/auth/token?code=A"})
    assert "./auth/oidc?return_to=%2Fauth%2Ftoken%3Fcode%3DA" in page.text


def test_sessions_of_the_issuer_end_like_others(installation: Installation, issuer: Issuer) -> None:
    add_user(installation, "ada", "ada@example.com")
    issuer.claims |= {"email": "ada@example.com", "email_verified": True}
    sign_in(installation, issuer)
    value = installation.client.cookies["caraway_session"]
    csrf = installation.client.get("/v1/sessions/current").json()["csrf_token"]
    headers = {"x-csrf-token": csrf}
    assert installation.client.delete("/v1/sessions/current", headers=headers).status_code == 204
    installation.client.cookies.clear()
    assert Caller(installation.client, value).get("/v1/whoami").status_code == 401
