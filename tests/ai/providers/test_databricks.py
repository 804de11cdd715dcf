"""Tokens of a service principal: what the token service may answer, and how long they are kept."""

import ssl
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from caraway_ai.providers import databricks
from caraway_ai.providers.databricks import ServicePrincipal
from caraway_ai.providers.params import ModelParams
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelAwayError, ModelError
from tests.kit.listening import listening

PARAMS = {"databricks_client_id": "id", "databricks_client_secret": "a-client-secret"}


class TokenService:
    """Answers with a body and counts."""

    def __init__(self, body: str | bytes, status: int = 200) -> None:
        self.count = 0
        self._body, self._status = body, status
        self.app = Starlette(routes=[Route("/oidc/v1/token", self._answer, methods=["POST"])])

    async def _answer(self, request: Request) -> Response:
        self.count += 1
        return Response(self._body, self._status, media_type="application/json")


def principal(url: str) -> ServicePrincipal:
    spec = ModelSpec("m", "databricks", "llama", PARAMS)
    found = ServicePrincipal(spec, ModelParams(spec), url)
    # The tests use plain HTTP, and to load the usual certificates takes long.
    found._verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return found


@pytest.mark.parametrize(
    "body",
    [
        "", "[]", "{}", '{"access_token": null}', '{"access_token": ""}', b"\xff\xfe",
        '{"access_token": "t", "expires_in": "soon"}', '{"access_token": "t", "expires_in": NaN}',
    ],
)  # fmt: skip
async def test_what_is_no_token(body: str | bytes) -> None:
    service = TokenService(body)
    async with listening(service.app) as url:
        with pytest.raises(ModelError, match="its token service sent no token") as caught:
            await principal(url).token()
    assert caught.value.type == "failed"


@pytest.mark.parametrize(
    ("status", "type_"),
    [(400, "auth"), (404, "not_found"), (503, "unavailable"), (302, "failed")],
)
async def test_a_refusal_has_its_type_and_no_secret(status: int, type_: str) -> None:
    service = TokenService('{"error": "invalid_client a-client-secret"}', status)
    async with listening(service.app) as url:
        with pytest.raises(ModelError) as caught:
            await principal(url).token()
    assert caught.value.type == type_
    assert "a-client-secret" not in caught.value.message


async def test_a_service_that_is_away() -> None:
    with pytest.raises(ModelAwayError, match="cannot be reached"):
        await principal("http://127.0.0.1:9").token()


async def test_a_token_is_kept_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    clock: Any = type("Clock", (), {"monotonic": staticmethod(lambda: now[0])})
    monkeypatch.setattr(databricks, "time", clock)
    service = TokenService('{"access_token": "t", "expires_in": 600}')
    async with listening(service.app) as url:
        tokens = principal(url)
        for at, count in ((1_000.0, 1), (1_500.0, 1), (1_539.0, 1), (1_541.0, 2), (2_000.0, 2)):
            now[0] = at
            assert await tokens.token() == "t"
            assert service.count == count
