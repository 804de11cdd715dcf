"""Embedding models that are deployed in Azure OpenAI."""

from urllib.parse import quote

from caraway_core.errors import ModelError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings import remote
from caraway_plugins.embeddings.openai import OpenAIWire
from caraway_plugins.embeddings.params import EmbedderParams
from caraway_plugins.embeddings.remote import RemoteEmbedder

_VERSION = "2024-10-21"


def build(spec: EmbedderSpec) -> Embedder:
    """Make a client of one deployment; it needs `azure_api_key` or `azure_entra_token`.

    Raises:
        ModelError: a param or the name of the deployment is missing or wrong.
    """
    params = EmbedderParams(spec)
    if not spec.model:
        raise ModelError(
            f"embedding model '{spec.name}' names no deployment; write 'azure:<deployment>'",
            "invalid",
        )
    endpoint = params.url("endpoint").removesuffix("/openai")
    token = params.text("azure_entra_token")
    headers = (
        {"Authorization": f"Bearer {token}"}
        if token
        else {"api-key": params.needed("azure_api_key")}
    )
    version = quote(params.text("azure_api_version", _VERSION), safe="")
    url = (
        f"{endpoint}/openai/deployments/{quote(spec.model, safe='')}/embeddings"
        f"?api-version={version}"
    )
    timeout_s = params.seconds("client_timeout", remote.TIMEOUT_S)
    return RemoteEmbedder(spec, params, OpenAIWire(spec.name, url, spec.model, headers, timeout_s))
