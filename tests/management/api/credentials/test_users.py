import pytest

from tests.kit.management import Installation

PASSWORD = "correct horse battery"


def test_administrators_add_users_with_passwords(installation: Installation) -> None:
    admin = installation.sign_in(installation.add_user("root", is_administrator=True))
    body = {"username": "Ada", "password": PASSWORD, "email": "Ada@Example.com"}
    made = admin.post("/v1/users", body)
    assert made.status_code == 201
    assert made.json() | {"created_at": "", "id": 0} == {
        "id": 0,
        "username": "Ada",
        "email": "ada@example.com",
        "is_administrator": False,
        "has_password": True,
        "created_at": "",
    }
    assert PASSWORD not in made.text and "argon2" not in made.text
    assert admin.post("/v1/users", {"username": "ADA"}).status_code == 409
    signed_in = {"username": "ada", "password": PASSWORD}
    assert installation.anonymous().post("/v1/sessions", signed_in).status_code == 201
    path = f"/v1/users/{made.json()['id']}/password"
    assert admin.put(path, {"password": "quite another one"}).status_code == 204
    assert installation.anonymous().get("/v1/whoami").status_code == 401
    installation.client.cookies.clear()
    assert installation.anonymous().post("/v1/sessions", signed_in).status_code == 401
    names = [each["username"] for each in admin.get("/v1/users").json()["users"]]
    assert names == ["root", "Ada"]


def test_others_do_not_manage_users(installation: Installation) -> None:
    user = installation.add_user()
    caller = installation.sign_in(user)
    for answer in (
        caller.get("/v1/users"),
        caller.post("/v1/users", {"username": "eve", "is_administrator": True}),
        caller.get(f"/v1/users/{user.id}"),
        caller.put(f"/v1/users/{user.id}/password", {"password": PASSWORD}),
        caller.delete(f"/v1/users/{user.id}"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    "body",
    [
        {"username": ""},
        {"username": "a b"},
        {"username": "ada", "password": "short"},
        {"username": "ada", "email": "no address"},
        {"username": "ada", "id": 1},
    ],
)
def test_wrong_users_are_refused(installation: Installation, body: dict[str, object]) -> None:
    admin = installation.sign_in(installation.add_user("root", is_administrator=True))
    assert admin.post("/v1/users", body).status_code == 400


def test_administrators_do_not_delete_themselves(installation: Installation) -> None:
    root = installation.add_user("root", is_administrator=True)
    caller = installation.sign_in(root)
    assert caller.delete(f"/v1/users/{root.id}").status_code == 409
    assert caller.delete("/v1/users/99999").status_code == 404
