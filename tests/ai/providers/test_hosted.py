"""Where each provider of the OpenAI wire is called, and with which key."""

from typing import Any

import pytest
from starlette.responses import JSONResponse

from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError
from tests.ai.providers.recording import Recorder
from tests.kit.listening import listening
from tests.kit.models import USER, built


@pytest.mark.parametrize(
    ("provider", "key", "path"),
    [
        ("openai", "openai_api_key", "/v1/chat/completions"),
        ("xai", "xai_api_key", "/v1/chat/completions"),
        ("groq", "groq_api_key", "/v1/chat/completions"),
        ("google", "google_api_key", "/v1/chat/completions"),
        ("perplexity", "perplexity_auth_token", "/v1/chat/completions"),
        ("databricks", "databricks_token", "/v1/serving-endpoints/chat/completions"),
    ],
)
async def test_the_key_is_sent_as_a_bearer(provider: str, key: str, path: str) -> None:
    server = Recorder()
    async with listening(server.app) as url:
        model = built(provider, f"{url}/v1", "the-model", **{key: "the-key"})
        await model.check()
        assert (await model.chat({"messages": USER}))["choices"]
        await model.aclose()
    call = server.seen[-1]
    assert call.url.path == path
    assert call.headers["authorization"] == "Bearer the-key"
    assert server.bodies[-1]["model"] == "the-model"


async def test_a_server_without_a_key_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    monkeypatch.setenv("OPENAI_ORG_ID", "of-the-environment")
    server = Recorder()
    async with listening(server.app) as url:
        params = {"endpoint": f"{url}/v1"}
        model = ModelSpec("m", "openai", "x", params).build()
        await model.chat({"messages": USER})
        await model.aclose()
    assert "authorization" not in server.seen[-1].headers
    assert "openai-organization" not in server.seen[-1].headers


@pytest.mark.parametrize(
    ("address", "path", "query"),
    [("", "/openai/deployments/gpt/chat/completions", "api-version=2024-10-21"),
     ("/openai/v1", "/openai/v1/chat/completions", "")],
)  # fmt: skip
async def test_azure_is_called_by_deployment(address: str, path: str, query: str) -> None:
    server = Recorder()
    async with listening(server.app) as url:
        model = built("azure", f"{url}{address}", "gpt", azure_api_key="the-key")
        await model.check()
        assert server.seen[-1].url.path.endswith("/models")
        await model.chat({"messages": USER})
        await model.aclose()
    call = server.seen[-1]
    assert (call.url.path, call.url.query) == (path, query)
    assert call.headers["api-key"] == "the-key"
    assert "authorization" not in call.headers


async def test_azure_takes_a_token_of_entra() -> None:
    server = Recorder()
    async with listening(server.app) as url:
        spec = ModelSpec("m", "azure", "gpt", {"endpoint": url, "azure_entra_token": "entra"})
        model = spec.build()
        await model.chat({"messages": USER})
        await model.aclose()
    assert server.seen[-1].headers["authorization"] == "Bearer entra"


async def test_databricks_gets_tokens_for_a_service_principal() -> None:
    token = JSONResponse({"access_token": "short-lived", "expires_in": 3600})
    server = Recorder({"/oidc/v1/token": token})
    params = {"databricks_client_id": "id", "databricks_client_secret": "secret"}
    async with listening(server.app) as url:
        spec = ModelSpec("m", "databricks", "llama", {"databricks_endpoint": url, **params})
        model = spec.build()
        await model.check()
        await model.chat({"messages": USER})
        await model.aclose()
    paths = [request.url.path for request in server.seen]
    assert paths == ["/oidc/v1/token", "/api/2.0/serving-endpoints/llama",
                     "/serving-endpoints/chat/completions"]  # fmt: skip
    assert server.seen[-1].headers["authorization"] == "Bearer short-lived"
    assert "client_credentials" in server.bodies[0]


async def test_databricks_credentials_that_are_wrong_are_told() -> None:
    server = Recorder({"/oidc/v1/token": JSONResponse({"error": "invalid_client"}, 400)})
    params = {"databricks_client_id": "id", "databricks_client_secret": "wrong-secret"}
    async with listening(server.app) as url:
        spec = ModelSpec("m", "databricks", "llama", {"databricks_endpoint": url, **params})
        model = spec.build()
        with pytest.raises(ModelError) as caught:
            await model.check()
        await model.aclose()
    assert caught.value.code == "model.auth"
    assert "databricks_client_secret" in caught.value.message
    assert "wrong-secret" not in caught.value.message


@pytest.mark.parametrize(
    ("provider", "params", "words"),
    [
        ("azure", {"azure_api_key": "k"}, "'endpoint'"),
        ("databricks", {"databricks_token": "k"}, "databricks_endpoint"),
        ("xai", {}, "xai_api_key"),
        ("groq", {"groq_api_key": "k"}, "names no model"),
        ("openai", {}, "openai_api_key"),
    ],
)
def test_what_is_missing_is_named(provider: str, params: dict[str, str], words: str) -> None:
    model = "" if "no model" in words else "x"
    with pytest.raises(ModelError, match=words):
        ModelSpec("m", provider, model, params).build()


async def test_a_key_refused_with_400_is_about_the_key() -> None:
    refused = JSONResponse([{"error": {"code": 400, "message": "API key not valid."}}], 400)
    server = Recorder({"/v1/chat/completions": refused})
    async with listening(server.app) as url:
        model = built("google", f"{url}/v1", "gemini")
        with pytest.raises(ModelError) as caught:
            await model.chat({"messages": USER})
        await model.aclose()
    assert caught.value.code == "model.auth"


@pytest.mark.parametrize("provider", ["openai", "xai", "azure", "anthropic", "databricks"])
@pytest.mark.parametrize(
    "address",
    ["http://[::1", "https://host:port/v1", "https://host:99999", "http://:80", "//host/v1",
     "ftp://host", "host:80/v1", "http://"],
)  # fmt: skip
def test_an_endpoint_that_is_no_address_is_named(provider: str, address: str) -> None:
    if provider == "databricks" and "://" not in address:
        return  # There a host is enough.
    with pytest.raises(ModelError, match="'endpoint' is no address") as caught:
        built(provider, address)
    assert caught.value.type == "invalid"


async def test_the_address_of_openai_may_be_written_out() -> None:
    for address in ("https://api.openai.com/v1", ""):
        model: Any = built("openai", address)
        assert model.responses is not None
        await model.aclose()
