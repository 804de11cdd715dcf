from typing import Any

import pytest

from caraway_management.domain.scopes import Role
from tests.kit.management import Caller, Installation

_ACCEPT = {"accept": "application/json, text/event-stream"}


def _ask(caller: Caller, method: str, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return caller.post("/mcp", message, headers=_ACCEPT)


def _call(caller: Caller, name: str, **arguments: Any) -> Any:
    answer = _ask(caller, "tools/call", name=name, arguments=arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def test_each_route_is_a_tool_with_the_answer_of_the_route(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    tools = {tool["name"]: tool for tool in _ask(caller, "tools/list").json()["result"]["tools"]}
    assert {"list_organizations", "get_limits", "get_organization_limits"} <= set(tools)
    assert not any(name.endswith("_of_apps") for name in tools)
    assert set(tools["get_organization_limits"]["inputSchema"]["properties"]) == {"orgId", "org"}
    result = _call(caller, "get_organization_limits", orgId=org.id)
    assert result["structuredContent"] == {
        "status": 200,
        "body": caller.get(f"/v1/orgs/{org.id}/limits").json(),
    }


def test_a_refusal_has_the_status_and_the_code_of_the_route(installation: Installation) -> None:
    owner = installation.add_user()
    org = installation.add_org("acme", owner)
    stranger = installation.sign_in(installation.add_member(org, Role.VIEWER))
    result = _call(stranger, "get_limits", org="nobody")
    assert result["isError"]
    assert result["structuredContent"]["status"] == 404
    result = _call(stranger, "get_organization_limits", orgId="../../orgs")
    assert result["structuredContent"]["status"] == 404
    result = _call(stranger, "get_organization_limits", orgId="x")
    assert result["structuredContent"]["body"]["code"] == "invalid_org_id"
    limited = installation.sign_in(owner, "secrets:read")
    result = _call(limited, "get_limits")
    assert result["structuredContent"]["body"]["code"] == "insufficient_scope"


def test_without_a_credential_the_metadata_is_named(installation: Installation) -> None:
    answer = _ask(installation.anonymous(), "tools/list")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == (
        'Bearer resource_metadata="http://testserver/.well-known/oauth-protected-resource/mcp"'
    )


def test_pages_of_other_origins_are_refused(installation: Installation) -> None:
    owner = installation.add_user()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = installation.sign_in(owner).post(
        "/mcp", message, headers={**_ACCEPT, "origin": "https://evil.example"}
    )
    assert answer.status_code == 403


def test_a_call_counts_once_against_the_rates(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)

    def remaining() -> int:
        return int(caller.get("/v1/orgs").headers["x-ratelimit-remaining"])

    before = remaining()
    assert _call(caller, "get_limits")["structuredContent"]["status"] == 200
    assert remaining() == before - 2


def test_a_ping_is_answered(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    assert _ask(installation.sign_in(owner), "ping").json()["result"] is not None


def test_arguments_that_no_request_can_have_get_the_answer_of_the_route(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    caller = installation.sign_in(owner)
    for name, arguments, said in (
        ("get_project", {}, "projectId"),
        ("get_project", {"projectId": ""}, "projectId"),
        ("delete_project", {"projectId": None}, "projectId"),
        ("get_limits", {"org": "\u00e9"}, "X-Org-Name"),
        ("get_limits", {"org": "a\r\nX-Evil: 1"}, "X-Org-Name"),
    ):
        result = _call(caller, name, **arguments)
        assert result["isError"]
        assert result["structuredContent"]["status"] == 400, name
        assert said in result["structuredContent"]["body"]["error"]
    for number in ("NaN", "1e400"):
        text = (
            '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_project",'
            f'"arguments":{{"name":"infinite","replicas":{number}}}}}}}'
        )
        headers = {**_ACCEPT, "content-type": "application/json"}
        answer = caller.post("/mcp", content=text, headers=headers).json()["result"]
        assert answer["structuredContent"]["status"] == 400
    assert "raised" not in caplog.text


def test_no_stream_is_opened_that_would_never_say_anything(installation: Installation) -> None:
    owner = installation.add_user()
    installation.add_org("acme", owner)
    answer = installation.sign_in(owner).get("/mcp", headers={"accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
