"""Embedding models of OpenAI, and of servers that speak its protocol."""

from collections.abc import Mapping, Sequence
from typing import Any

from caraway_core.errors import ModelError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings import remote
from caraway_plugins.embeddings.http_wire import JsonClient
from caraway_plugins.embeddings.params import EmbedderParams
from caraway_plugins.embeddings.remote import Item, RemoteEmbedder, RemoteVectors

_ENDPOINT = "https://api.openai.com/v1"
_MODEL = "text-embedding-3-small"
_MOST_TEXTS = 2048


def build(spec: EmbedderSpec) -> Embedder:
    """Make a client. Without an `endpoint` it needs a key.

    Raises:
        ModelError: a param is missing or wrong.
    """
    params = EmbedderParams(spec)
    endpoint = params.url("endpoint", _ENDPOINT)
    is_openai = endpoint == _ENDPOINT
    key = params.needed("openai_api_key") if is_openai else params.text("openai_api_key")
    headers = {
        "Authorization": f"Bearer {key}" if key else "",
        "OpenAI-Organization": params.text("openai_org_id"),
        "OpenAI-Project": params.text("openai_project_id"),
    }
    wire = OpenAIWire(
        spec.name,
        f"{endpoint}/embeddings",
        spec.model or _MODEL,
        {name: value for name, value in headers.items() if value},
        params.seconds("client_timeout", remote.TIMEOUT_S),
    )
    return RemoteEmbedder(spec, params, wire)


class OpenAIWire:
    """Implements `ProviderWire` for `POST /v1/embeddings`."""

    most_texts = _MOST_TEXTS

    def __init__(
        self, name: str, url: str, model: str, headers: Mapping[str, str], timeout_s: float
    ) -> None:
        self._name = name
        self._url = url
        self._model = model
        self._client = JsonClient(f"embedding model '{name}'", headers, timeout_s)
        self.place = f"{url} {model}"

    def request(self, items: Sequence[Item], dimensions: int | None) -> RemoteVectors:
        body: dict[str, Any] = {
            "model": self._model,
            "input": [item if isinstance(item, str) else list(item) for item in items],
            "encoding_format": "float",
        }
        if dimensions is not None:
            body["dimensions"] = dimensions
        return _read(self._name, self._client.post(self._url, body))

    def close(self) -> None:
        self._client.close()


def _read(name: str, answer: dict[str, Any]) -> RemoteVectors:
    """Read the vectors in the order of the texts, which need not be that of the answer."""
    try:
        items = sorted(answer["data"], key=lambda item: item["index"])
        rows = [item["embedding"] for item in items]
        tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise ModelError(
            f"embedding model '{name}': the provider's answer has no list of embeddings"
        ) from exc
    return RemoteVectors(rows, tokens)
