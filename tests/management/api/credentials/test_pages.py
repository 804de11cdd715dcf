"""The pages that browsers see: their headers, their cookies, and forms of other sites."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import pytest
from fastapi.routing import APIRoute
from starlette.requests import Request

from caraway_management.api import joining
from caraway_management.api.credentials import authorize, devices, oidc, pages, sign_in
from caraway_management.credentials.settings import CredentialSettings
from tests.kit import management
from tests.kit.management import Installation

PASSWORD = "correct horse battery"
PUBLIC_URL = "https://caraway.example"
FORMS = ("/sign-in", "/auth/token", "/oauth/authorize", "/join")


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """An installation that browsers reach over TLS, with a user who has a password."""
    url = management.prepared_embedded_url(tmp_path)
    settings = CredentialSettings(PUBLIC_URL)
    with management.installation(url, is_prepared=True, credentials=settings) as made:
        user = made.add_user("ada")
        made.add_org("acme", user)
        made.sign_in(user).put("/v1/whoami/password", {"password": PASSWORD})
        yield made


def post(installation: Installation, path: str, headers: dict[str, str]) -> httpx2.Response:
    fields = {"username": "ada", "password": PASSWORD, "decision": "approve", "code": "BBBB-BBBB"}
    return installation.client.post(path, data=fields, headers=headers, follow_redirects=False)


def signed_in(installation: Installation) -> str:
    """Sign in by the form; return the Cookie header of the browser."""
    answer = post(installation, "/sign-in", {})
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    attributes = {each.strip().lower() for each in cookie.split(";")[1:]}
    assert {"httponly", "secure", "samesite=lax", "path=/"} <= attributes
    assert not any(each.startswith("domain") for each in attributes)
    return str(cookie.partition(";")[0])


def test_every_page_forbids_scripts_frames_and_sniffing(installation: Installation) -> None:
    cookie = {"cookie": signed_in(installation)}
    pages = [
        installation.client.get("/sign-in?return_to=/%22%3E%3Cscript%3E"),
        post(installation, "/sign-in", {}) and installation.client.post(
            "/sign-in", data={"username": "<script>", "password": "wrong"}
        ),
        installation.client.get("/auth/token", headers=cookie),
        installation.client.get("/auth/token?code=<script>", headers=cookie),
    ]  # fmt: skip
    for page in pages:
        assert page.headers["content-type"].startswith("text/html"), page.text
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ") and "frame-ancestors 'none'" in policy
        assert "script" not in policy and "form-action 'self'" in policy
        expected = {
            "x-frame-options": "DENY", "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin", "cache-control": "no-store",
        }  # fmt: skip
        assert {name: page.headers[name] for name in expected} == expected
        assert "<script" not in page.text
    assert installation.anonymous().get("/v1/health").headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
    ids=str,
)
def test_forms_of_other_sites_are_refused(
    installation: Installation, path: str, headers: dict[str, str]
) -> None:
    cookie = signed_in(installation)
    answer = post(installation, path, headers | {"cookie": cookie})
    assert (answer.status_code, answer.json()["code"]) == (403, "csrf_mismatch")
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", FORMS[1:])
def test_forms_without_the_text_of_their_page_are_refused(
    installation: Installation, path: str
) -> None:
    cookie = signed_in(installation)
    for own in ({}, {"origin": PUBLIC_URL}, {"origin": "http://testserver"}):
        answer = post(installation, path, {"cookie": cookie, **own})
        assert (answer.status_code, answer.json()["code"]) == (403, "csrf_mismatch")


def test_all_forms_are_tested() -> None:
    routers = (authorize.router, devices.router, joining.router, oidc.router, sign_in.router)
    posted = {
        route.path
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        and "POST" in (route.methods or ())
        and not route.path.startswith("/v1/")
    }
    # Programs post JSON to this one, without a cookie.
    assert posted == {*FORMS, "/auth/token/exchange"}


def test_a_redirect_back_leads_to_no_other_site(installation: Installation) -> None:
    for target in ("https://evil.example", "//evil.example", "/\\evil.example", "/a\r\nx: y"):
        fields = {"username": "ada", "password": PASSWORD, "return_to": target}
        answer = installation.client.post("/sign-in", data=fields, follow_redirects=False)
        assert answer.status_code == 400, (target, answer.headers.get("location"))


@pytest.mark.parametrize(
    ("path", "place", "address"),
    [
        ("/sign-in", "/", "./"),
        ("/sign-in", "/javascript:alert(1)", "./javascript:alert(1)"),
        ("/auth/oidc/callback", "/#/projects/7", "../../#/projects/7"),
    ],
)
def test_addresses_are_relative_and_name_no_other_place(
    path: str, place: str, address: str
) -> None:
    request = Request({"type": "http", "path": path, "headers": [], "server": ("host", 80)})
    assert pages.address(request, place) == address
    assert urljoin(f"https://host/data{path}", address) == f"https://host/data{place}"


def test_no_page_names_the_root_of_the_host(installation: Installation) -> None:
    cookie = {"cookie": signed_in(installation)}
    paths = ("/sign-in", "/auth/token", "/join?value=x", "/v1/docs")
    for path in paths:
        page = installation.client.get(path, headers=cookie)
        assert not re.findall(r"""(?:href|action|src)=['"]?/""", page.text), path
    redirect = installation.client.get("/join?value=x", follow_redirects=False)
    assert redirect.headers["location"] == "./sign-in?return_to=%2Fjoin%3Fvalue%3Dx"
