import re

from sqlalchemy import select

from caraway_management.domain.scopes import Role
from caraway_management.store.tables import DeviceSignIn
from tests.kit.management import PUBLIC_URL, Caller, Installation

PASSWORD = "correct horse battery"


def begin(installation: Installation) -> dict[str, str]:
    answer = installation.anonymous().send("POST", "/v1/device-sign-ins")
    assert answer.status_code == 201
    body: dict[str, str] = answer.json()
    return body


def poll(installation: Installation, code: str) -> tuple[int, dict[str, object]]:
    answer = installation.anonymous().post("/auth/token/exchange", {"code": code})
    return answer.status_code, answer.json()


def session_of(installation: Installation, name: str = "ada") -> Caller:
    user = installation.add_user(name)
    installation.add_org(f"org-of-{name}", user)
    installation.sign_in(user).put("/v1/whoami/password", {"password": PASSWORD})
    body = {"username": name, "password": PASSWORD}
    value = installation.anonymous().post("/v1/sessions", body).json()["access_token"]
    installation.client.cookies.clear()
    return Caller(installation.client, value)


def test_a_command_line_is_signed_in(installation: Installation) -> None:
    device = begin(installation)
    assert re.fullmatch(r"[B-Z]{4}-[B-Z]{4}", device["user_code"])
    assert device["verification_url"] == f"{PUBLIC_URL}/auth/token"
    assert poll(installation, device["code"]) == (202, {"status": "pending"})
    session = session_of(installation)
    typed = device["user_code"].replace("-", "").lower()
    assert session.get(f"/v1/device-sign-ins/{typed}").json()["address"] == "testclient"
    approved = session.post(f"/v1/device-sign-ins/{typed}/approve")
    assert (approved.status_code, approved.json()["state"]) == (200, "approved")
    status, body = poll(installation, device["code"])
    assert (status, body["access_denied"]) == (200, False)
    token = str(body["access_token"])
    assert token.startswith("cwc_")
    # The code gives one token only.
    assert poll(installation, device["code"])[0] == 410
    line = Caller(installation.client, token)
    assert line.get("/v1/limits").status_code == 200
    context = line.get("/api/spice-cli/auth").json()
    assert (context["username"], context["org"]["name"]) == ("ada", "org-of-ada")
    assert line.get("/api/spice-cli/auth?org_name=ORG-OF-ADA").json() == context
    assert line.get("/api/spice-cli/auth?org_name=nobody").status_code == 404
    assert device["code"] not in installation.rows(select(DeviceSignIn.code_hash))


def test_a_user_denies(installation: Installation) -> None:
    device = begin(installation)
    session = session_of(installation)
    assert session.post(f"/v1/device-sign-ins/{device['user_code']}/deny").status_code == 200
    assert poll(installation, device["code"]) == (
        200,
        {"access_token": None, "access_denied": True},
    )
    again = session.post(f"/v1/device-sign-ins/{device['user_code']}/approve")
    assert again.status_code == 404


def test_codes_expire(installation: Installation) -> None:
    device = begin(installation)
    installation.clock.advance(minutes=15)
    assert poll(installation, device["code"])[0] == 410
    assert poll(installation, "cwd_unknown")[0] == 404
    session = session_of(installation)
    assert session.get(f"/v1/device-sign-ins/{device['user_code']}").status_code == 404


def test_only_sessions_approve(installation: Installation) -> None:
    device = begin(installation)
    path = f"/v1/device-sign-ins/{device['user_code']}"
    token = installation.sign_in(installation.add_user())
    for answer in (token.get(path), token.post(f"{path}/approve"), token.post(f"{path}/deny")):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert installation.anonymous().post(f"{path}/approve").status_code == 401
    assert poll(installation, device["code"])[0] == 202


def test_user_codes_cannot_be_guessed(installation: Installation) -> None:
    session = session_of(installation)
    guesses = [session.get(f"/v1/device-sign-ins/BBBB-BB{n:02}").status_code for n in range(21)]
    assert guesses == [404] * 20 + [429]


def test_the_page_approves(installation: Installation) -> None:
    device = begin(installation)
    client = installation.client
    link = device["verification_url_complete"].removeprefix(PUBLIC_URL)
    redirected = client.get(link, follow_redirects=False)
    assert redirected.headers["location"].startswith("../sign-in?return_to=%2Fauth%2Ftoken%3Fcode")
    session = session_of(installation)
    client.cookies.set("caraway_session", str(session.token))
    assert "Code that the command line shows" in client.get("/auth/token").text
    page = client.get(link)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text.partition("<button")[0]))
    forged = client.post("/auth/token", data=fields | {"csrf": "x", "decision": "approve"})
    assert forged.json()["code"] == "csrf_mismatch"
    done = client.post("/auth/token", data=fields | {"decision": "approve"})
    assert done.status_code == 200 and "Approved" in done.text
    client.cookies.clear()
    assert poll(installation, device["code"])[1]["access_denied"] is False


def test_a_user_who_was_deleted_meanwhile_is_not_signed_in(installation: Installation) -> None:
    device = begin(installation)
    admin = installation.sign_in(installation.add_user("root", is_administrator=True))
    user = installation.add_user("eve")
    installation.sign_in(user).put("/v1/whoami/password", {"password": PASSWORD})
    body = {"username": "eve", "password": PASSWORD}
    value = installation.anonymous().post("/v1/sessions", body).json()["access_token"]
    installation.client.cookies.clear()
    session = Caller(installation.client, value)
    session.post(f"/v1/device-sign-ins/{device['user_code']}/approve")
    assert admin.delete(f"/v1/users/{user.id}").status_code == 204
    assert poll(installation, device["code"])[1]["access_denied"] is True


def test_the_context_has_the_first_project_and_its_key(installation: Installation) -> None:
    owner = installation.add_user("ada")
    org = installation.add_org("acme", owner)
    viewer = installation.add_member(org, Role.VIEWER)
    caller = installation.sign_in(owner)
    assert caller.get("/api/spice-cli/auth").json()["app"] is None
    project = caller.post("/v1/projects", {"name": "sales"}).json()
    keys = caller.get(f"/v1/projects/{project['id']}/api-keys").json()
    app = caller.get("/api/spice-cli/auth").json()["app"]
    assert app == {"id": project["id"], "name": "sales", "api_key": keys["api_key"]}
    seen = installation.sign_in(viewer).get("/api/spice-cli/auth").json()["app"]
    assert (seen["name"], seen["api_key"]) == ("sales", None)
