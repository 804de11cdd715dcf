import json
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_kube.api import client, errors
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.client import KubeClient, _Token
from caraway_kube.api.kinds import CONFIG_MAP, LEASE, POD, SECRET, SERVICE, SERVICE_MONITOR
from caraway_kube.naming import OPERATOR
from tests.kit.kube import emulated

ACCESS = ApiAccess("http://api.test", token="first")
Answer = Callable[[httpx.Request], httpx.Response]


def kube(answer: Answer, access: ApiAccess = ACCESS) -> KubeClient:
    http = httpx.AsyncClient(
        base_url=access.server, transport=httpx.MockTransport(answer), auth=_Token(access)
    )
    return KubeClient(access, http, OPERATOR)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_DELAYS", Delays(0, 0))


async def test_replace_sends_the_whole_object() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"metadata": {}})

    metadata = {"name": "shop", "namespace": "web", "resourceVersion": "7"}
    desired = {"kind": "Service", "metadata": metadata}
    await kube(answer).replace(desired)

    [request] = seen
    assert request.method == "PUT"
    assert request.url.path == "/api/v1/namespaces/web/services/shop"
    assert dict(request.url.params) == {"fieldManager": "caraway-operator"}
    assert json.loads(request.content) == desired


async def test_apply_sends_the_object_as_the_manager_of_the_client() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, json={"metadata": {}})

    desired = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "shop", "namespace": "web"},
        "data": {"a": "1"},
    }
    http = httpx.AsyncClient(base_url=ACCESS.server, transport=httpx.MockTransport(answer))
    await KubeClient(ACCESS, http, "caraway-management").apply(desired)

    [request] = seen
    assert request.method == "PATCH"
    assert request.url.path == "/api/v1/namespaces/web/configmaps/shop"
    assert dict(request.url.params) == {"fieldManager": "caraway-management", "force": "true"}
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"
    assert json.loads(request.content) == desired


async def test_apply_creates_an_object_and_then_changes_it() -> None:
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), "caraway-management") as opened,
    ):
        for value in ("1", "2"):
            await opened.apply(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "shop", "namespace": "web"},
                    "data": {"a": value},
                }
            )
            assert api.get("ConfigMap", "shop")["data"] == {"a": value}


async def test_a_dry_run_sets_the_parameter() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(201, json={"metadata": {}})

    desired = {"kind": "Service", "metadata": {"generateName": "shop-", "namespace": "web"}}
    await kube(answer).create(desired, is_dry_run=True)

    assert seen[0].url.params["dryRun"] == "All"


async def test_lists_are_read_page_by_page() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if "continue" not in request.url.params:
            page = {"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}]}
            return httpx.Response(200, json=page)
        metadata = {"resourceVersion": "7"}
        return httpx.Response(
            200, json={"metadata": metadata, "items": [{"metadata": {"name": "b"}}]}
        )

    found = await kube(answer).list(POD, None, "a=b")

    assert [each["metadata"]["name"] for each in found.items] == ["a", "b"]
    assert (found.version, found.items[0]["kind"]) == ("7", "Pod")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, errors.ObjectNotFoundError),
        (409, errors.ConflictError),
        (422, errors.ObjectInvalidError),
        (403, errors.RequestRejectedError),
        (503, errors.ApiUnavailableError),
    ],
)
async def test_errors_contain_the_request_and_the_reason(
    status: int, kind: type[errors.KubeError]
) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, json={"message": "because"})

    with pytest.raises(kind, match=r"GET /api/v1/namespaces/web/services/shop.*because"):
        await kube(answer).get(SERVICE, "web", "shop")


async def test_errors_about_secrets_leave_out_the_message() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(422, json={"message": "data: hunter2 is not allowed"})

    with pytest.raises(errors.RequestRejectedError) as caught:
        await kube(answer).create({"kind": "Secret", "metadata": {"name": "x", "namespace": "y"}})

    assert "hunter2" not in str(caught.value)
    assert SECRET.plural in str(caught.value)


async def test_an_overloaded_api_server_is_retried_a_bounded_number_of_times() -> None:
    asked = 0

    def answer(_: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        return httpx.Response(503)

    with pytest.raises(errors.ApiUnavailableError):
        await kube(answer).get(SERVICE, "web", "shop")
    assert asked == 3


async def test_creating_is_not_retried_after_a_lost_answer() -> None:
    asked = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        raise httpx.ReadTimeout("late", request=request)

    with pytest.raises(errors.ApiUnavailableError):
        await kube(answer).create({"kind": "Lease", "metadata": {"name": "x", "namespace": "y"}})
    assert asked == 1
    assert LEASE.name == "Lease"


async def test_delete_has_a_precondition_and_accepts_a_missing_object() -> None:
    bodies = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(409, json={"message": "another uid"})

    await kube(answer).delete(CONFIG_MAP, "web", "shop", "u-1")

    assert bodies[0]["preconditions"] == {"uid": "u-1"}


async def test_a_rotated_token_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["Authorization"])
        file.write_text("new\n")
        return httpx.Response(401 if seen[-1].endswith("old") else 200, json={})

    await kube(answer, ApiAccess("http://api.test", token_file=file)).get(SERVICE, "web", "shop")

    assert seen == ["Bearer old", "Bearer new"]


async def test_a_kind_that_is_not_installed_is_not_served() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404)

    assert not await kube(answer).serves(SERVICE_MONITOR)


async def test_an_expired_watch_raises_its_own_error() -> None:
    line = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=json.dumps(line) + "\n")

    with pytest.raises(errors.ExpiredError):
        async for _ in kube(answer).watch(POD, None, "", "5"):
            pass


async def test_watch_events_are_split_at_line_feeds_only() -> None:
    name = "one\u0085two\u2028three"
    line = {"type": "ADDED", "object": {"metadata": {"name": name}}}
    text = json.dumps(line, ensure_ascii=False) + "\n"

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=(text * 2).encode())

    found = [each async for each in kube(answer).watch(POD, None, "", "5")]

    assert [object_["metadata"]["name"] for _, object_ in found] == [name, name]


async def test_malformed_json_breaks_only_the_watch() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content="<html>\n")

    with pytest.raises(errors.ApiUnavailableError):
        async for _ in kube(answer).watch(POD, None, "", "5"):
            pass


async def test_each_watch_has_its_own_connection() -> None:
    async with client.open_client(ACCESS, OPERATOR) as found:
        [transport] = {found._http._transport}
        assert isinstance(transport, httpx.AsyncHTTPTransport)
        # The number of kinds times the number of namespaces.
        assert transport._pool._max_connections > 10_000


def test_the_repr_of_the_access_contains_no_secrets() -> None:
    assert "first" not in repr(ACCESS)


async def test_a_quiet_watch_outlasts_the_timeout_that_the_api_server_ends_it_with() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, content=b"")

    events = [event async for event in kube(answer).watch(SERVICE, None, "", "7")]

    [request] = seen
    assert events == []
    assert request.extensions["timeout"]["read"] > int(request.url.params["timeoutSeconds"])


async def test_connections_notice_by_themselves_that_the_peer_is_gone() -> None:
    """Otherwise a watch on a broken connection would hide changes until its read timeout."""
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as opened,
    ):
        async with opened._http.stream("GET", "/api/v1/namespaces/web/services") as response:
            sock = response.extensions["network_stream"].get_extra_info("socket")

            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
