from datetime import timedelta

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.domain.scopes import Role
from caraway_management.store.tables import Org, Token
from tests.kit.management import BEGAN, Caller, Installation


def test_a_token_is_shown_once_and_kept_as_a_hash(installation: Installation) -> None:
    owner = installation.add_user("ada")
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    body = {"name": "ci", "scopes": ["apps:write", "secrets:read"], "org_id": org.id}
    answer = caller.post("/v1/tokens", body)
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    value = made.pop("token")
    assert value.startswith("cwp_")
    assert made["scopes"] == ["apps:write", "secrets:read"]
    assert caller.get(f"/v1/tokens/{made['id']}").json() == made
    listed = caller.get("/v1/tokens").json()["tokens"]
    assert [each["name"] for each in listed] == ["ci", "test"]
    assert value not in str(listed) and listed[0]["hint"] == value[:12]
    assert value not in installation.rows(select(Token.value_hash))
    machine = Caller(installation.client, value)
    assert machine.get("/v1/limits").status_code == 200
    me = machine.get("/v1/whoami").json()
    assert me["org"] == {"id": org.id, "name": "acme"}
    assert me["scopes"] == ["apps:read", "apps:write", "secrets:read"]


def test_a_revoked_token_is_refused_at_once(installation: Installation) -> None:
    caller = installation.sign_in(installation.add_user())
    made = caller.post("/v1/tokens", {"name": "t", "scopes": ["*"]}).json()
    token = Caller(installation.client, made["token"])
    assert token.get("/v1/whoami").status_code == 200
    assert caller.delete(f"/v1/tokens/{made['id']}").status_code == 204
    assert token.get("/v1/whoami").json()["error"] == "Invalid token"
    assert caller.delete(f"/v1/tokens/{made['id']}").status_code == 404
    assert caller.get(f"/v1/tokens/{made['id']}").status_code == 404


def test_an_expired_token_is_refused(installation: Installation) -> None:
    caller = installation.sign_in(installation.add_user())
    body = {"name": "t", "scopes": ["*"], "expires_at": (BEGAN + timedelta(hours=1)).isoformat()}
    token = Caller(installation.client, caller.post("/v1/tokens", body).json()["token"])
    installation.clock.advance(minutes=59)
    assert token.get("/v1/whoami").status_code == 200
    installation.clock.advance(minutes=1)
    assert token.get("/v1/whoami").json()["error"] == "Token expired"


def test_a_token_gives_no_more_than_it_has(installation: Installation) -> None:
    owner = installation.add_user()
    org, other = installation.add_org("acme", owner), installation.add_org("umbrella", owner)
    limited = installation.sign_in(owner, "credentials:write", "apps:read")
    ok = {"name": "t", "scopes": ["apps:read"]}
    assert limited.post("/v1/tokens", ok).status_code == 201
    for scopes in (["*"], ["apps:write"], ["apps:read", "secrets:read"]):
        refused = limited.post("/v1/tokens", {"name": "t", "scopes": scopes})
        assert (refused.status_code, refused.json()["code"]) == (403, "insufficient_scope")
    bound = installation.sign_in(owner, org_id=org.id)
    assert bound.post("/v1/tokens", ok | {"org_id": org.id}).status_code == 201
    for org_id in (None, other.id):
        assert bound.post("/v1/tokens", ok | {"org_id": org_id}).status_code == 400
    assert {each["org_id"] for each in bound.get("/v1/tokens").json()["tokens"]} == {org.id}
    unbound_id = limited.post("/v1/tokens", ok).json()["id"]
    assert bound.delete(f"/v1/tokens/{unbound_id}").status_code == 404
    reader = installation.sign_in(owner, "apps:read")
    assert reader.get("/v1/tokens").json()["code"] == "insufficient_scope"
    assert reader.post("/v1/tokens", ok).json()["code"] == "insufficient_scope"


def test_a_token_does_not_outlive_the_one_that_made_it(installation: Installation) -> None:
    caller = installation.sign_in(installation.add_user())
    ends = (BEGAN + timedelta(days=1)).isoformat()
    later = (BEGAN + timedelta(days=2)).isoformat()
    body = {"name": "t", "scopes": ["*"]}
    made = caller.post("/v1/tokens", body | {"expires_at": ends}).json()
    short = Caller(installation.client, made["token"])
    child = short.post("/v1/tokens", body).json()
    assert child["expires_at"] == made["expires_at"] != None  # noqa: E711
    assert short.post("/v1/tokens", body | {"expires_at": later}).status_code == 400


def test_wrong_bodies_are_refused(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    gone = installation.add_org("gone", owner)
    stranger = installation.add_user()

    async def delete(session: AsyncSession) -> None:
        deleted = update(Org).where(Org.id == gone.id).values(deleted_at=BEGAN)
        await session.execute(deleted)

    installation.change(delete)
    caller = installation.sign_in(owner)
    good: dict[str, object] = {"name": "t", "scopes": ["apps:read"]}
    past = (BEGAN - timedelta(seconds=1)).isoformat()
    table: list[tuple[dict[str, object], int, str | None]] = [
        ({"name": ""}, 400, None),
        ({"name": "a\nb"}, 400, None),
        ({"scopes": []}, 400, None),
        ({"scopes": ["root"]}, 400, None),
        ({"expires_at": past}, 400, None),
        ({"expires_at": "2026-12-01T00:00:00"}, 400, None),
        ({"expires_at": "9999-12-31T00:00:00Z"}, 400, None),
        ({"org_id": 99_999}, 403, "org_forbidden"),
        ({"org_id": gone.id}, 403, "org_deleted"),
        ({"user_id": owner.id}, 400, None),
        ({"kind": "cli"}, 400, None),
    ]
    for wrong, status, code in table:
        answer = caller.post("/v1/tokens", good | wrong)
        assert (answer.status_code, answer.json().get("code")) == (status, code), wrong
    foreign = installation.sign_in(stranger).post("/v1/tokens", good | {"org_id": org.id})
    assert foreign.json()["code"] == "org_forbidden"


def test_tokens_of_others_look_like_none(installation: Installation) -> None:
    made = installation.sign_in(installation.add_user()).post(
        "/v1/tokens", {"name": "t", "scopes": ["*"]}
    )
    other = installation.sign_in(installation.add_user())
    path = f"/v1/tokens/{made.json()['id']}"
    assert other.get(path).status_code == other.delete(path).status_code == 404


def test_the_last_use_is_kept_once_a_minute(installation: Installation) -> None:
    caller = installation.sign_in(installation.add_user())

    def last_use() -> object:
        return installation.rows(select(Token.last_used_at))[0]

    caller.get("/v1/whoami")
    assert last_use() == BEGAN
    installation.clock.advance(seconds=59)
    caller.get("/v1/whoami")
    assert last_use() == BEGAN
    installation.clock.advance(seconds=1)
    caller.get("/v1/whoami")
    assert last_use() == BEGAN + timedelta(minutes=1)


def test_tokens_of_a_deleted_user_are_refused(installation: Installation) -> None:
    admin = installation.sign_in(installation.add_user(is_administrator=True))
    owner = installation.add_user("ada")
    org = installation.add_org("acme", owner)
    user = installation.add_member(org, Role.MEMBER)
    token = installation.sign_in(user)
    assert token.get("/v1/limits").status_code == 200
    assert admin.delete(f"/v1/users/{owner.id}").status_code == 409
    assert admin.delete(f"/v1/users/{user.id}").status_code == 204
    assert token.get("/v1/whoami").json()["error"] == "Invalid token"
    assert admin.get(f"/v1/users/{user.id}").status_code == 404


def test_a_former_member_reaches_the_organization_no_more(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    viewer = installation.sign_in(installation.add_member(org, Role.VIEWER))
    strange = installation.sign_in(installation.add_user(), org_id=org.id)
    assert viewer.get("/v1/limits").status_code == 200
    assert strange.get("/v1/limits").json()["code"] == "org_forbidden"
