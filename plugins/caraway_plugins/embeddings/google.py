"""Embedding models of Google's Gemini API, over REST."""

from collections.abc import Sequence
from urllib.parse import quote

from caraway_core.errors import ModelError, ModelInputError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings import remote
from caraway_plugins.embeddings.http_wire import JsonClient
from caraway_plugins.embeddings.params import EmbedderParams
from caraway_plugins.embeddings.remote import Item, RemoteEmbedder, RemoteVectors

_ENDPOINT = "https://generativelanguage.googleapis.com/v1beta"
_MODEL = "gemini-embedding-001"
_MOST_TEXTS = 100


def build(spec: EmbedderSpec) -> Embedder:
    """Make a client; it needs `google_api_key`.

    Raises:
        ModelError: a param is missing or wrong.
    """
    params = EmbedderParams(spec)
    model = (spec.model or _MODEL).removeprefix("models/")
    wire = _GoogleWire(
        spec.name,
        params.url("endpoint", _ENDPOINT),
        model,
        params.needed("google_api_key"),
        params.seconds("client_timeout", remote.TIMEOUT_S),
    )
    return RemoteEmbedder(spec, params, wire)


class _GoogleWire:
    """Implements `ProviderWire` for `batchEmbedContents`."""

    most_texts = _MOST_TEXTS

    def __init__(self, name: str, endpoint: str, model: str, key: str, timeout_s: float) -> None:
        self._name = name
        self._model = f"models/{model}"
        self._url = f"{endpoint}/models/{quote(model, safe='')}:batchEmbedContents"
        # In a header, since addresses are logged.
        self._client = JsonClient(f"embedding model '{name}'", {"x-goog-api-key": key}, timeout_s)
        self.place = f"{endpoint} {model}"

    def request(self, items: Sequence[Item], dimensions: int | None) -> RemoteVectors:
        requests = [self._one(item, dimensions) for item in items]
        answer = self._client.post(self._url, {"requests": requests})
        try:
            rows = [each["values"] for each in answer["embeddings"]]
        except (KeyError, TypeError) as exc:
            raise ModelError(
                f"embedding model '{self._name}': the provider's answer has no list of embeddings"
            ) from exc
        # This API counts no tokens; about four characters are one.
        return RemoteVectors(rows, sum(len(item) // 4 + 1 for item in items))

    def close(self) -> None:
        self._client.close()

    def _one(self, item: Item, dimensions: int | None) -> dict[str, object]:
        if not isinstance(item, str):
            raise ModelInputError(f"embedding model '{self._name}' takes texts only, not tokens")
        body: dict[str, object] = {"model": self._model, "content": {"parts": [{"text": item}]}}
        if dimensions is not None:
            body["outputDimensionality"] = dimensions
        return body
