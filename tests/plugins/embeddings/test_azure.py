"""Azure against a local provider."""

import pytest

from caraway_core.errors import ModelError
from caraway_core.protocols.embedding import EmbedderSpec
from tests.kit.embedders import firsts
from tests.kit.json_provider import JsonProvider


def test_azure(provider: JsonProvider) -> None:
    params = {"endpoint": f"{provider.url}/openai", "azure_api_key": "k"}
    assert firsts(EmbedderSpec("a", "azure", "my deploy", params).build(), ["abc"]) == [3.0]
    params = {"endpoint": provider.url, "azure_entra_token": "t", "azure_api_version": "v"}
    assert firsts(EmbedderSpec("a", "azure", "d", params).build(), ["abc"]) == [3.0]
    first, second = provider.requests
    at = "/openai/deployments/{}/embeddings?api-version={}"
    assert first.path == at.format("my%20deploy", "2024-10-21")
    assert first.headers["api-key"] == "k"
    assert second.path == at.format("d", "v")
    assert second.headers["authorization"] == "Bearer t"


@pytest.mark.parametrize(
    ("model", "params", "said"),
    [
        ("", {"endpoint": "http://a"}, "names no deployment; write 'azure:<deployment>'"),
        ("d", {"azure_api_key": "k"}, "the param 'endpoint' is missing"),
        ("d", {"endpoint": "http://a"}, "the param 'azure_api_key' is missing"),
    ],
)
def test_wrong_params(model: str, params: dict[str, str], said: str) -> None:
    with pytest.raises(ModelError, match=r"^embedding model 'mine'") as caught:
        EmbedderSpec("mine", "azure", model, params).build()
    assert said in caught.value.message
