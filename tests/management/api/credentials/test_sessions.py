import pytest
from sqlalchemy import select

from caraway_management.credentials import sessions
from caraway_management.domain.scopes import Role
from caraway_management.store.tables import Activity, PortalSession
from tests.kit.management import Caller, Installation

PASSWORD = "correct horse battery"


def add_user_with_password(installation: Installation, name: str = "ada") -> int:
    user = installation.add_user(name)
    caller = installation.sign_in(user)
    answer = caller.put("/v1/whoami/password", {"password": PASSWORD})
    assert answer.status_code == 204
    return user.id


def sign_in(installation: Installation, name: str = "ada") -> dict[str, object]:
    answer = installation.anonymous().post("/v1/sessions", {"username": name, "password": PASSWORD})
    assert answer.status_code == 201, answer.text
    body: dict[str, object] = answer.json()
    return body


def test_a_password_opens_a_session(installation: Installation) -> None:
    user_id = add_user_with_password(installation)
    answer = installation.anonymous().post(
        "/v1/sessions", {"username": "ADA", "password": PASSWORD}
    )
    body = answer.json()
    cookie = answer.headers["set-cookie"]
    assert answer.headers["cache-control"] == "no-store"
    assert cookie.startswith(f"caraway_session={body['access_token']};")
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Secure" not in cookie
    me = Caller(installation.client, body["access_token"]).get("/v1/whoami").json()
    assert (me["kind"], me["user"]["id"]) == ("session", user_id)
    stored = installation.rows(select(PortalSession.value_hash))
    assert body["access_token"] not in stored


def test_a_session_acts_for_the_organization_that_it_names(installation: Installation) -> None:
    owner = installation.add_user("ada")
    installation.add_org("acme", owner)
    installation.sign_in(owner).put("/v1/whoami/password", {"password": PASSWORD})
    session = Caller(installation.client, str(sign_in(installation)["access_token"]))
    refused = session.get("/v1/limits")
    assert (refused.status_code, refused.json()["code"]) == (400, "org_assertion_required")
    assert session.get("/v1/limits", headers={"x-org-name": "Acme"}).status_code == 200
    assert session.get("/v1/orgs").json()["orgs"][0]["name"] == "acme"


def test_changes_by_cookie_need_the_csrf_token(installation: Installation) -> None:
    add_user_with_password(installation)
    body = sign_in(installation)
    browser = installation.anonymous()
    token = {"name": "t", "scopes": ["apps:read"]}
    assert browser.get("/v1/tokens").status_code == 200
    for headers in ({}, {"x-csrf-token": "cwx_wrong"}, {"x-csrf-token": "é".encode()}):
        # With a key the credential was looked up before the route asks for it.
        keyed = {**headers, "idempotency-key": "key"}
        assert browser.post("/v1/tokens", token, headers=keyed).json()["code"] == "csrf_mismatch"
        refused = browser.post("/v1/tokens", token, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "csrf_mismatch"), headers
    current = browser.get("/v1/sessions/current").json()
    assert current["csrf_token"] == body["csrf_token"]
    assert current["is_current"] is True
    headers = {"x-csrf-token": current["csrf_token"]}
    assert browser.post("/v1/tokens", token, headers=headers).status_code == 201
    installation.client.cookies.clear()
    bearer = Caller(installation.client, str(body["access_token"]))
    assert bearer.post("/v1/tokens", token).status_code == 201


def test_the_csrf_token_of_another_session_is_refused(installation: Installation) -> None:
    add_user_with_password(installation)
    other = sign_in(installation)
    installation.client.cookies.clear()
    sign_in(installation)
    refused = installation.anonymous().delete(
        "/v1/sessions", headers={"x-csrf-token": str(other["csrf_token"])}
    )
    assert refused.json()["code"] == "csrf_mismatch"


def test_only_sessions_travel_in_the_cookie(installation: Installation) -> None:
    token = installation.sign_in(installation.add_user()).token
    installation.client.cookies.set("caraway_session", str(token))
    assert installation.anonymous().get("/v1/whoami").status_code == 401


def test_sign_in_gives_a_new_value_and_ends_the_one_before(installation: Installation) -> None:
    add_user_with_password(installation)
    first = sign_in(installation)
    second = sign_in(installation)
    assert first["access_token"] != second["access_token"]
    installation.client.cookies.clear()
    assert (
        Caller(installation.client, str(first["access_token"])).get("/v1/whoami").status_code == 401
    )
    # A value that the attacker chose is never taken over.
    installation.client.cookies.set("caraway_session", "cws_chosen")
    assert sign_in(installation)["access_token"] != "cws_chosen"


def test_sessions_end(installation: Installation) -> None:
    user_id = add_user_with_password(installation)
    values = []
    for _ in range(3):
        installation.client.cookies.clear()
        values.append(str(sign_in(installation)["access_token"]))
    installation.client.cookies.clear()
    one, two, three = (Caller(installation.client, value) for value in values)
    listed = one.get("/v1/sessions").json()["sessions"]
    assert [each["is_current"] for each in listed] == [False, False, True]
    assert one.delete(f"/v1/sessions/{listed[0]['id']}").status_code == 204
    assert three.get("/v1/whoami").status_code == 401
    assert one.delete("/v1/sessions/current").status_code == 204
    assert one.get("/v1/whoami").status_code == 401
    assert two.get("/v1/whoami").status_code == 200
    assert two.delete("/v1/sessions").status_code == 204
    assert two.get("/v1/whoami").status_code == 401
    done = installation.rows(select(Activity.action).where(Activity.actor_id == user_id))
    assert "create_session" in done and "delete_sessions" in done


def test_a_session_of_another_user_looks_like_none(installation: Installation) -> None:
    add_user_with_password(installation)
    session_id = sign_in(installation)["id"]
    installation.client.cookies.clear()
    other = installation.sign_in(installation.add_user())
    assert other.get(f"/v1/sessions/{session_id}").status_code == 404
    assert other.delete(f"/v1/sessions/{session_id}").status_code == 404
    for wrong in ("current", "0", "x", "9" * 20):
        assert other.get(f"/v1/sessions/{wrong}").status_code == 404


def test_idle_and_old_sessions_are_over(installation: Installation) -> None:
    add_user_with_password(installation)
    session = Caller(installation.client, str(sign_in(installation)["access_token"]))
    installation.client.cookies.clear()
    for _ in range(6):
        installation.clock.advance(hours=23)
        assert session.get("/v1/whoami").status_code == 200
        installation.wait_for_records()
    installation.clock.advance(hours=24)
    assert session.get("/v1/whoami").json()["error"] == "Token expired"
    session = Caller(installation.client, str(sign_in(installation)["access_token"]))
    installation.client.cookies.clear()
    for _ in range(int(sessions.LIFETIME.total_seconds()) // 3_600 // 12 - 1):
        installation.clock.advance(hours=12)
        assert session.get("/v1/whoami").status_code == 200
        installation.wait_for_records()
    installation.clock.advance(hours=12)
    assert session.get("/v1/whoami").status_code == 401


def test_unknown_users_and_wrong_passwords_get_the_same_answer(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_user_with_password(installation)
    installation.add_user("without")
    verified: list[bool] = []
    passwords = installation.services.passwords
    verify = passwords._verify

    def noted(stored: str, password: str) -> bool:
        verified.append(stored.startswith("$argon2id$"))
        return verify(stored, password)

    monkeypatch.setattr(passwords, "_verify", noted)
    answers = [
        installation.anonymous().post("/v1/sessions", {"username": name, "password": "wrong"})
        for name in ("ada", "nobody", "without")
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    # The same work was done for each.
    assert verified == [True] * 3


def test_texts_that_are_no_unicode_are_refused(installation: Installation) -> None:
    body = b'{"username": "\\ud800", "password": "\\udfff"}'
    headers = {"content-type": "application/json"}
    answer = installation.anonymous().send("POST", "/v1/sessions", content=body, headers=headers)
    assert answer.status_code == 400


def test_wrong_passwords_lock_out_a_user_at_an_address(installation: Installation) -> None:
    add_user_with_password(installation)
    anonymous = installation.anonymous()
    wrong = {"username": "ada", "password": "wrong"}
    assert [anonymous.post("/v1/sessions", wrong).status_code for _ in range(5)] == [401] * 5
    refused = anonymous.post("/v1/sessions", {"username": "Ada", "password": PASSWORD})
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_attempts")
    assert refused.headers["retry-after"] == "900"
    # A user who does not exist is locked out in the same way.
    unknown = {"username": "nobody", "password": "wrong"}
    statuses = [anonymous.post("/v1/sessions", unknown).status_code for _ in range(6)]
    assert statuses == [401] * 5 + [429]
    installation.clock.advance(minutes=15)
    sign_in(installation)


def test_right_passwords_lock_nobody_out(installation: Installation) -> None:
    add_user_with_password(installation)
    for _ in range(8):
        sign_in(installation)


def test_an_address_that_guesses_names_is_locked_out(installation: Installation) -> None:
    anonymous = installation.anonymous()
    statuses = [
        anonymous.post("/v1/sessions", {"username": f"u{n}", "password": "x"}).status_code
        for n in range(101)
    ]
    assert statuses == [401] * 100 + [429]


def test_forms_of_other_sites_do_not_sign_in(installation: Installation) -> None:
    add_user_with_password(installation)
    refused = installation.anonymous().post(
        "/v1/sessions",
        {"username": "ada", "password": PASSWORD},
        headers={"sec-fetch-site": "cross-site"},
    )
    assert refused.json()["code"] == "csrf_mismatch"


def test_a_new_password_ends_other_sessions(installation: Installation) -> None:
    add_user_with_password(installation)
    other = Caller(installation.client, str(sign_in(installation)["access_token"]))
    installation.client.cookies.clear()
    mine = Caller(installation.client, str(sign_in(installation)["access_token"]))
    installation.client.cookies.clear()
    body = {"password": "another good password", "current_password": "wrong"}
    assert mine.put("/v1/whoami/password", body).status_code == 401
    body["current_password"] = PASSWORD
    assert mine.put("/v1/whoami/password", body).status_code == 204
    assert mine.get("/v1/whoami").status_code == 200
    assert other.get("/v1/whoami").status_code == 401
    assert (
        installation.anonymous()
        .post("/v1/sessions", {"username": "ada", "password": PASSWORD})
        .status_code
        == 401
    )


@pytest.mark.parametrize(
    "password", ["short", "aaaaaaaaaaaaaaa", "Ada-Ada-Ada-1234", "x" * 257, "tab\there is bad pw"]
)
def test_weak_passwords_are_refused(installation: Installation, password: str) -> None:
    caller = installation.sign_in(installation.add_user("ada"))
    answer = caller.put("/v1/whoami/password", {"password": password})
    assert answer.status_code == 400
    assert "password" in answer.json()["details"]["fieldErrors"]


def test_tokens_of_one_organization_do_not_manage_the_account(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    bound = installation.sign_in(owner, org_id=org.id)
    for answer in (
        bound.get("/v1/sessions"),
        bound.delete("/v1/sessions"),
        bound.put("/v1/whoami/password", {"password": PASSWORD}),
        bound.get("/v1/users"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    viewer = installation.add_member(org, Role.VIEWER)
    limited = installation.sign_in(viewer, "apps:read").get("/v1/sessions")
    assert limited.json()["code"] == "insufficient_scope"
