"""A tool over HTTP sends its arguments in the path, query or body, and reports failures."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from caraway_ai.tools.http_tool import HttpService, HttpTool
from caraway_ai.tools.protocol import ToolCaller
from caraway_core.errors import CarawayError, DeadlineError, ToolError
from caraway_core.manifest.values.declared_tools import DeclaredTool

Answer = Callable[[httpx.Request], httpx.Response]


def tool(url: str, answer: Answer, **params: str) -> HttpTool:
    declared = DeclaredTool("weather", "http", url, params=params)
    service = HttpService.from_params(declared, params)
    return HttpTool(declared, service, httpx.MockTransport(answer))


async def sent(url: str, arguments: dict[str, Any], **params: str) -> httpx.Request:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"ok": True})

    assert await tool(url, answer, **params).call(arguments, ToolCaller()) == {"ok": True}
    return seen[0]


async def test_arguments_go_into_the_path_and_the_query() -> None:
    request = await sent(
        "https://api.test/v1/{city}/now",
        {"city": "São Paulo/../x", "unit": "c", "deep": True},
        headers="X-Key: k1; Accept-Language: en",
        auth_token="secret",
    )
    assert request.url.raw_path == b"/v1/S%C3%A3o%20Paulo%2F..%2Fx/now?unit=c&deep=true"
    assert request.headers["x-key"] == "k1"
    assert request.headers["accept-language"] == "en"
    assert request.headers["authorization"] == "Bearer secret"


async def test_an_argument_cannot_leave_its_place() -> None:
    for city in ("..", ".", "?a=b", "#x", "@evil.test/"):
        request = await sent("https://api.test/v1/{city}/now", {"city": city})
        assert request.url.host == "api.test"
        assert request.url.raw_path.startswith(b"/v1/") and request.url.raw_path.endswith(b"/now")


async def test_a_post_has_a_json_body() -> None:
    request = await sent("https://api.test/{id}", {"id": 7, "tags": ["a"]}, method="POST")
    assert request.url.path == "/7"
    assert json.loads(request.content) == {"tags": ["a"]}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (httpx.Response(200, text="sunny"), "sunny"),
        (httpx.Response(200, json=[1, 2]), [1, 2]),
        (httpx.Response(200, content=b"1", headers={"content-type": "application/x+json"}), 1),
        (httpx.Response(204), {"status": 204}),
        (httpx.Response(200, content=b"\xe9",
                        headers={"content-type": "text/plain;charset=latin1"}),
         "é"),
        *(
            (httpx.Response(200, content=b"ok\xff",
                            headers={"content-type": f"text/plain;charset={each}"}), "ok\ufffd")
            for each in ("no-such-one", "base64", "undefined", "utf-8", "''")
        ),
    ],
)  # fmt: skip
async def test_bodies(answer: httpx.Response, expected: Any) -> None:
    found = await tool("https://api.test/", lambda _: answer).call({}, ToolCaller())
    assert found == expected


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("http://user:password@api.test refused")


def late(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("too late")


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (lambda _: httpx.Response(404, text="no city"), ToolError, "HTTP status 404: no city"),
        (lambda _: httpx.Response(302, headers={"location": "/x"}), ToolError, "status 302"),
        (lambda _: httpx.Response(500, text="x" * 10_000), ToolError, "status 500"),
        (lambda _: httpx.Response(200, text="x" * 2_000_000), ToolError, "more than 1048576"),
        (
            lambda _: httpx.Response(200, text="{", headers={"content-type": "application/json"}),
            ToolError,
            "the answer is not JSON",
        ),
        (unreachable, ToolError, "cannot be reached (ConnectError)"),
        (late, DeadlineError, "did not answer within 5 s"),
    ],
)
async def test_failures_are_told_without_secrets(
    answer: Answer, kind: type[CarawayError], told: str
) -> None:
    with pytest.raises(kind) as caught:
        await tool("https://api.test/", answer, timeout="5s").call({}, ToolCaller())
    assert told in caught.value.message
    assert len(caught.value.message) < 700
    assert "password" not in caught.value.message


def test_headers_are_read() -> None:
    declared = DeclaredTool("t", "http", "https://api.test/")
    read = HttpService.from_params(declared, {"headers": "A: b:c ;\nX-D:  e"}).headers
    assert (read["a"], read["x-d"]) == ("b:c", "e")
    for wrong in ("secret-without-colon", "bad name: x", ": x"):
        with pytest.raises(ToolError) as caught:
            HttpService.from_params(declared, {"headers": wrong})
        assert "secret" not in caught.value.message


@pytest.mark.parametrize("charset", ["klingon", "rot13", "hex"])
async def test_a_charset_that_is_none_is_passed_over(charset: str) -> None:
    kind = {"content-type": f"text/plain; charset={charset}"}
    weather = tool("https://api.test/", lambda _: httpx.Response(200, headers=kind, text="hello"))
    assert await weather.call({}, ToolCaller()) == "hello"


async def test_an_error_of_the_service_shows_no_secret() -> None:
    def refuses(request: httpx.Request) -> httpx.Response:
        return httpx.Response(500, text=f"no: {dict(request.headers)}")

    weather = tool(
        "https://api.test/", refuses, auth_token="secret-token", headers="X-Key: secret-key; X-A: b"
    )
    with pytest.raises(ToolError, match="HTTP status 500") as caught:
        await weather.call({}, ToolCaller())
    assert "secret" not in caught.value.message and "'x-a': 'b'" in caught.value.message
