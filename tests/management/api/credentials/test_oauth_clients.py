import base64
import hashlib
import hmac
import json
from datetime import timedelta
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_management.credentials import signing
from caraway_management.domain.scopes import Role
from caraway_management.store.tables import OAuthClient, Org, SigningKey
from tests.kit.management import BEGAN, PUBLIC_URL, Caller, Installation

ROUTE = "/api/oauth/token"


def add_client(caller: Caller, *scopes: str, **fields: Any) -> dict[str, Any]:
    body = {"name": "ci", "scopes": list(scopes) or ["apps:read"], **fields}
    answer = caller.post("/v1/oauth-clients", body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def credentials_of(client: dict[str, Any]) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
    }


def token_of(installation: Installation, client: dict[str, Any]) -> str:
    answer = installation.anonymous().post(ROUTE, credentials_of(client))
    assert answer.status_code == 200, answer.text
    value: str = answer.json()["access_token"]
    return value


def owner_of(installation: Installation, org: str = "acme") -> Caller:
    owner = installation.add_user()
    installation.add_org(org, owner)
    return installation.sign_in(owner)


def test_a_machine_gets_a_short_signed_token(installation: Installation) -> None:
    caller = owner_of(installation)
    client = add_client(caller, "apps:write", "deployments:read")
    answer = installation.anonymous().post(ROUTE, credentials_of(client))
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 3600)
    keys = KeySet.import_key_set(installation.anonymous().get("/.well-known/jwks.json").json())
    assert '"d"' not in json.dumps(keys.as_dict(private=False))
    token = jwt.decode(body["access_token"], keys, ["ES256"])
    claims = token.claims
    assert token.header["kid"] and token.header["typ"] == "at+jwt"
    assert claims["client_id"] == client["client_id"]
    assert claims["scopes"] == ["apps:write", "deployments:read"]
    assert claims["exp"] - claims["iat"] == 3600 and claims["iss"] == PUBLIC_URL
    assert claims["org_id"] and claims["jti"]
    machine = Caller(installation.client, body["access_token"])
    assert machine.get("/v1/limits").status_code == 200
    assert machine.get("/v1/orgs").json()["orgs"] == [
        {"id": claims["org_id"], "name": "acme", "role": "owner"}
    ]
    me = machine.get("/v1/whoami").json()
    assert (me["kind"], me["name"], me["user"]) == ("machine", "ci", None)


def test_forms_and_basic_credentials_work(installation: Installation) -> None:
    client = add_client(owner_of(installation))
    fields = credentials_of(client)
    anonymous = installation.anonymous()
    assert anonymous.send("POST", ROUTE, data=fields).status_code == 200
    pair = f"{fields.pop('client_id')}:{fields.pop('client_secret')}".encode()
    headers = {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
    assert anonymous.send("POST", ROUTE, data=fields, headers=headers).status_code == 200
    narrowed = anonymous.post(ROUTE, credentials_of(client) | {"scope": "apps:read"}).json()
    assert narrowed["scope"] == "apps:read"


def test_errors_are_those_of_the_standard(installation: Installation) -> None:
    client = add_client(owner_of(installation))
    good = credentials_of(client)
    anonymous = installation.anonymous()
    as_json = {"content-type": "application/json"}
    form = {"content-type": "application/x-www-form-urlencoded"}
    basic = {"authorization": "Basic " + base64.b64encode(b"a:b").decode()}
    table: list[tuple[dict[str, Any], int, str]] = [
        ({"json": good | {"client_secret": "wrong"}}, 401, "invalid_client"),
        ({"json": good | {"client_id": "cc_none"}}, 401, "invalid_client"),
        ({"json": good | {"client_id": "cc_none", "client_secret": ""}}, 401, "invalid_client"),
        ({"json": {k: v for k, v in good.items() if k != "client_secret"}}, 401, "invalid_client"),
        ({"json": good | {"grant_type": "password"}}, 400, "unsupported_grant_type"),
        ({"json": good | {"grant_type": "authorization_code"}}, 400, "unauthorized_client"),
        ({"json": good | {"grant_type": "refresh_token"}}, 400, "unauthorized_client"),
        ({"json": good | {"scope": "secrets:read"}}, 400, "invalid_scope"),
        ({"json": good | {"scope": "*"}}, 400, "invalid_scope"),
        ({"json": good | {"scope": 1}}, 400, "invalid_request"),
        ({"json": ["grant_type"]}, 400, "invalid_request"),
        ({"json": {}}, 400, "invalid_request"),
        ({"content": b"{", "headers": as_json}, 400, "invalid_request"),
        ({"content": b"[" * 100_000, "headers": as_json}, 400, "invalid_request"),
        ({"content": b"grant_type=a&grant_type=b", "headers": form}, 400, "invalid_request"),
        ({"content": b"\xff", "headers": form}, 400, "invalid_request"),
        ({"content": b"a=1&" * 100, "headers": form}, 400, "invalid_request"),
        ({"content": b"hello"}, 400, "invalid_request"),
        ({"json": good, "headers": basic}, 400, "invalid_request"),
        ({"json": {"grant_type": "client_credentials"}, "headers": basic}, 401, "invalid_client"),
        ({"json": good, "headers": {"authorization": "Bearer x"}}, 400, "invalid_request"),
        ({"data": {"grant_type": "client_credentials"}, "headers": {"authorization": "Basic é"}},
         401, "invalid_client"),
    ]  # fmt: skip
    for arguments, status, code in table:
        if "authorization" in arguments.get("headers", {}):
            arguments["headers"] = {k: v.encode() for k, v in arguments["headers"].items()}
        answer = anonymous.send("POST", ROUTE, **arguments)
        assert (answer.status_code, answer.json()["error"]) == (status, code), arguments
        assert set(answer.json()) == {"error", "error_description"}
        assert ("www-authenticate" in answer.headers) is (status == 401)


def test_the_table_of_errors_of_the_spec_for_machines(installation: Installation) -> None:
    caller = owner_of(installation)
    org_id = caller.get("/v1/orgs").json()["orgs"][0]["id"]
    other = owner_of(installation, "umbrella").get("/v1/orgs").json()["orgs"][0]["id"]
    machine = Caller(installation.client, token_of(installation, add_client(caller)))
    limited = Caller(
        installation.client, token_of(installation, add_client(caller, "secrets:read"))
    )
    path = f"/v1/orgs/{org_id}/limits"
    table = [
        (machine, "/v1/limits", {}, 200, None),
        (machine, "/v1/limits", {"x-org-name": ""}, 400, "invalid_org_assertion"),
        (machine, "/v1/limits", {"x-org-name": "ACME"}, 200, None),
        (machine, "/v1/limits", {"x-org-name": "umbrella"}, 403, "org_assertion_mismatch"),
        (machine, "/v1/limits", {"x-org-name": "nobody"}, 403, "org_assertion_mismatch"),
        (limited, "/v1/limits", {}, 403, "insufficient_scope"),
        (machine, path, {}, 200, None),
        (machine, path, {"x-org-name": "umbrella"}, 400, "org_path_mismatch"),
        (machine, f"/v1/orgs/{other}/limits", {}, 403, "org_assertion_mismatch"),
        (machine, "/v1/orgs/99999/limits", {}, 403, "org_assertion_mismatch"),
        (machine, "/v1/orgs/0/limits", {}, 400, "invalid_org_id"),
        (machine, "/v1/tokens", {}, 403, "insufficient_scope"),
    ]
    for sender, route, headers, status, code in table:
        answer = sender.get(route, headers=headers)
        assert (answer.status_code, answer.json().get("code")) == (status, code), (route, headers)


def test_deleting_a_client_refuses_its_tokens_and_a_new_secret_does_not(
    installation: Installation,
) -> None:
    caller = owner_of(installation)
    client = add_client(caller)
    machine = Caller(installation.client, token_of(installation, client))
    path = f"/v1/oauth-clients/{client['client_id']}"
    renewed = caller.post(f"{path}/secret")
    assert renewed.status_code == 200
    old = installation.anonymous().post(ROUTE, credentials_of(client))
    assert old.json()["error"] == "invalid_client"
    assert machine.get("/v1/limits").status_code == 200
    fresh = Caller(installation.client, token_of(installation, renewed.json()))
    assert caller.delete(path).status_code == 204
    for each in (machine, fresh):
        assert each.get("/v1/limits").json()["error"] == "Invalid token"
    gone = installation.anonymous().post(ROUTE, credentials_of(renewed.json()))
    assert gone.json()["error"] == "invalid_client"
    assert caller.get(path).status_code == caller.delete(path).status_code == 404
    assert caller.get("/v1/oauth-clients").json() == {"oauth_clients": []}


def test_clients_and_tokens_expire(installation: Installation) -> None:
    caller = owner_of(installation)
    ends = (BEGAN + timedelta(minutes=30)).isoformat()
    short = add_client(caller, expires_at=ends)
    answer = installation.anonymous().post(ROUTE, credentials_of(short)).json()
    assert answer["expires_in"] == 1800
    long = Caller(installation.client, token_of(installation, add_client(caller)))
    machine = Caller(installation.client, answer["access_token"])
    installation.clock.advance(minutes=30)
    assert machine.get("/v1/limits").json()["error"] == "Token expired"
    assert installation.anonymous().post(ROUTE, credentials_of(short)).status_code == 401
    installation.clock.advance(minutes=30, seconds=29)
    # The clocks of instances may differ by 30 seconds.
    assert long.get("/v1/limits").status_code == 200
    installation.clock.advance(seconds=1)
    assert long.get("/v1/limits").json()["error"] == "Token expired"


def test_a_token_from_a_clock_far_ahead_is_refused(installation: Installation) -> None:
    client = add_client(owner_of(installation))
    installation.clock.advance(seconds=30)
    near = Caller(installation.client, token_of(installation, client))
    installation.clock.advance(seconds=31)
    far = Caller(installation.client, token_of(installation, client))
    installation.clock.advance(seconds=-61)
    assert near.get("/v1/limits").status_code == 200
    assert far.get("/v1/limits").status_code == 401


def test_scopes_that_are_taken_away_are_gone_at_once(installation: Installation) -> None:
    caller = owner_of(installation)
    client = add_client(caller, "apps:read", "members:read")
    machine = Caller(installation.client, token_of(installation, client))
    path = f"/v1/oauth-clients/{client['client_id']}"
    etag = caller.get(path).headers["etag"]
    changed = caller.patch(path, {"scopes": ["members:read"]}, headers={"if-match": etag})
    assert (changed.status_code, changed.json()["scopes"]) == (200, ["members:read"])
    assert machine.get("/v1/limits").json()["code"] == "insufficient_scope"
    lost = caller.patch(path, {"name": "x"}, headers={"if-match": etag})
    assert lost.status_code == 412
    assert caller.patch(path, {"org_id": 7}).status_code == 400
    assert caller.patch(path, {"role": "owner"}).status_code == 400
    assert caller.patch(path, {"name": None}).status_code == 400


def test_a_client_has_no_more_than_its_maker(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    admin = installation.sign_in(installation.add_member(org, Role.ADMIN))
    member = installation.sign_in(installation.add_member(org, Role.MEMBER))
    body = {"name": "m", "scopes": ["apps:read"]}
    assert member.post("/v1/oauth-clients", body).json()["code"] == "forbidden"
    limited = installation.sign_in(owner, "credentials:write").post("/v1/oauth-clients", body)
    assert limited.json()["code"] == "insufficient_scope"
    for scopes in (["orgs:delete"], ["*"]):
        refused = admin.post("/v1/oauth-clients", body | {"scopes": scopes})
        assert refused.json()["code"] == "insufficient_scope"
    # A client of an admin acts with the role of an admin, so an admin cannot become an owner by it.
    add_client(admin, "members:write")
    assert installation.rows(select(OAuthClient.role)) == ["admin"]
    owners = add_client(installation.sign_in(owner), "apps:read")
    path = f"/v1/oauth-clients/{owners['client_id']}"
    assert admin.post(f"{path}/secret").json()["code"] == "forbidden"
    assert admin.patch(path, {"scopes": ["apps:write"]}).status_code == 200


def test_clients_of_other_organizations_look_like_none(installation: Installation) -> None:
    client = add_client(owner_of(installation))
    other = owner_of(installation, "umbrella")
    path = f"/v1/oauth-clients/{client['client_id']}"
    for method, route in (
        ("GET", path), ("PATCH", path), ("DELETE", path), ("POST", f"{path}/secret"),
    ):  # fmt: skip
        answer = other.send(method, route, **({"json": {}} if method == "PATCH" else {}))
        assert answer.status_code == 404, route
    assert other.get("/v1/oauth-clients").json() == {"oauth_clients": []}


def test_keys_rotate_and_old_tokens_stay_valid(installation: Installation) -> None:
    client = add_client(owner_of(installation))
    token_of(installation, client)
    installation.clock.advance(days=29, hours=23, minutes=30)
    last = Caller(installation.client, token_of(installation, client))
    installation.clock.advance(minutes=30)
    token_of(installation, client)
    jwks = installation.anonymous().get("/.well-known/jwks.json").json()
    assert len(jwks["keys"]) == 2
    assert last.get("/v1/limits").status_code == 200
    sealed = installation.rows(select(SigningKey.sealed_private_key))
    # The private key is not readable in the database, and that of the old key is erased.
    assert sorted(map(bool, sealed)) == [False, True] and not any('"d"' in each for each in sealed)
    installation.clock.advance(hours=2)
    assert len(installation.anonymous().get("/.well-known/jwks.json").json()["keys"]) == 1


def forged(installation: Installation, value: str, how: str) -> str:
    """Return a token like another one, that this service did not sign."""
    head, body, signature = value.split(".")
    key_id = jwt.decode(value, _public(installation), ["ES256"]).header["kid"]
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    header = {"alg": "ES256", "typ": "at+jwt", "kid": key_id}
    strange = ECKey.generate_key("P-256")
    if how == "none":
        return f"{_encoded({**header, 'alg': 'none'})}.{body}."
    if how == "HS256":
        key = _public(installation).keys[0]
        assert isinstance(key, ECKey)
        pem = key.as_pem(private=False)
        text = f"{_encoded({**header, 'alg': 'HS256'})}.{body}"
        code = hmac.new(pem, text.encode(), hashlib.sha256).digest()
        return f"{text}.{base64.urlsafe_b64encode(code).rstrip(b'=').decode()}"
    if how == "strange key":
        return jwt.encode(header, claims, strange, ["ES256"])
    if how == "wrong kid":
        return jwt.encode({**header, "kid": "other"}, claims, strange, ["ES256"])
    if how == "kid no text":
        return f"{_encoded({**header, 'kid': {'a': 1}})}.{body}.{signature}"
    if how == "own key":
        own = {**header, "jwk": strange.as_dict(private=False)}
        return jwt.encode(own, claims, strange, ["ES256"])
    if how == "more scopes":
        return f"{head}.{_encoded({**claims, 'scopes': ['*']})}.{signature}"
    if how == "deep":
        return f"{base64.urlsafe_b64encode(b'[' * 4_000).decode()}.{body}.{signature}"
    if how == "long":
        return value + "a" * 9_000
    return f"{head}.{body}.{signature[:-4]}AAAA"


def _public(installation: Installation) -> KeySet:
    return KeySet.import_key_set(installation.anonymous().get("/.well-known/jwks.json").json())


def _encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_forged_tokens_are_refused(installation: Installation) -> None:
    value = token_of(installation, add_client(owner_of(installation)))
    assert Caller(installation.client, value).get("/v1/limits").status_code == 200
    for how in (
        "none", "HS256", "strange key", "wrong kid", "kid no text", "own key", "more scopes",
        "deep", "long", "signature",
    ):  # fmt: skip
        answer = Caller(installation.client, forged(installation, value, how)).get("/v1/limits")
        assert answer.status_code == 401, how
    for text in ("..", "a.b.c", "a.b.c.d", "\u00e9.b.c"):
        answer = installation.anonymous().get(
            "/v1/limits", headers={"authorization": f"Bearer {text}".encode()}
        )
        assert answer.status_code == 401, text


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("iss", "https://other.example"),
        ("iss", None),
        ("exp", None),
        ("exp", float(2**60)),
        ("client_id", "cc_other"),
        ("client_id", None),
        ("org_id", 99_999),
        ("jti", None),
        ("grant", 1),
    ],
)
def test_tokens_with_other_claims_are_refused(
    installation: Installation, claim: str, value: object
) -> None:
    made = token_of(installation, add_client(owner_of(installation)))
    claims = jwt.decode(made, _public(installation), ["ES256"]).claims
    changed = {**claims, claim: value}
    if value is None:
        del changed[claim]

    async def sign(session: AsyncSession) -> str:
        now = installation.clock()
        return await signing.sign(session, installation.services.sealer, now, changed)

    answer = Caller(installation.client, installation.change(sign)).get("/v1/limits")
    assert answer.status_code == (200 if claim == "exp" and value else 401)


def test_tokens_of_a_deleted_organization_are_refused(installation: Installation) -> None:
    machine = Caller(
        installation.client, token_of(installation, add_client(owner_of(installation)))
    )

    async def delete(session: AsyncSession) -> None:
        await session.execute(update(Org).values(deleted_at=installation.clock()))

    installation.change(delete)
    assert machine.get("/v1/limits").json()["code"] == "org_deleted"
