"""Embedding models of Amazon Bedrock: Titan and Cohere."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings import http_wire, remote
from caraway_plugins.embeddings.params import EmbedderParams
from caraway_plugins.embeddings.remote import Item, RemoteEmbedder, RemoteVectors

_MODEL = "amazon.titan-embed-text-v2:0"
_COHERE_MOST = 96


def build(spec: EmbedderSpec) -> Embedder:
    """Make a client. Without a key in its params it signs in as the AWS client library does.

    Raises:
        ModelError: a param is wrong, or the library is not installed.
    """
    params = EmbedderParams(spec)
    wire = BedrockWire(spec.name, spec.model or _MODEL, params)
    return RemoteEmbedder(spec, params, wire)


class BedrockWire:
    """Implements `ProviderWire` for `InvokeModel`."""

    def __init__(self, name: str, model: str, params: EmbedderParams) -> None:
        # boto3 takes a fifth of a second to import, and only this provider needs it.
        import boto3
        from botocore.config import Config

        timeout_s = params.seconds("client_timeout", remote.TIMEOUT_S)
        # Any: keyword arguments of several types.
        options: dict[str, Any] = {
            "region_name": params.text("aws_region"),
            "aws_access_key_id": params.text("aws_access_key_id"),
            "aws_secret_access_key": params.text("aws_secret_access_key"),
            "aws_session_token": params.text("aws_session_token"),
            "endpoint_url": params.url("endpoint") if params.text("endpoint") else "",
        }
        config = Config(
            connect_timeout=min(timeout_s, 10.0),
            read_timeout=timeout_s,
            retries={"total_max_attempts": 1},  # Retries are those of every provider.
        )
        try:
            self._client = boto3.session.Session().client(
                "bedrock-runtime",
                config=config,
                **{key: value for key, value in options.items() if value},
            )
        except Exception as exc:  # botocore's errors have no useful common base.
            raise ModelError(
                f"embedding model '{name}': {type(exc).__name__}; check the param 'aws_region'",
                "invalid",
            ) from exc
        self._name = name
        self._title = f"embedding model '{name}'"
        self._model = model
        self._is_cohere = model.split(".", 1)[-1].startswith("embed") or "cohere." in model
        self.most_texts = _COHERE_MOST if self._is_cohere else 1
        self.place = f"{options['region_name']} {options['endpoint_url']} {model}"

    def request(self, items: Sequence[Item], dimensions: int | None) -> RemoteVectors:
        texts = [item for item in items if isinstance(item, str)]
        if len(texts) < len(items):
            raise ModelInputError(f"{self._title} takes texts only, not tokens")
        if self._is_cohere:
            return self._cohere(texts)
        body: dict[str, Any] = {"inputText": texts[0]}
        if dimensions is not None:
            body["dimensions"] = dimensions
        answer = self._invoke(body)
        return RemoteVectors([answer.get("embedding")], int(answer.get("inputTextTokenCount") or 0))

    def close(self) -> None:
        self._client.close()

    def _cohere(self, texts: list[str]) -> RemoteVectors:
        answer = self._invoke({"texts": texts, "input_type": "search_document", "truncate": "END"})
        found = answer.get("embeddings")
        rows = found.get("float") if isinstance(found, dict) else found
        count = sum(len(text) // 4 + 1 for text in texts)
        return RemoteVectors(list(rows or ()), count)

    def _invoke(self, body: Mapping[str, object]) -> dict[str, Any]:
        from botocore import exceptions

        try:
            answer = self._client.invoke_model(
                modelId=self._model,
                body=json.dumps(body),
                contentType="application/json",
                accept="application/json",
            )
            content = json.loads(answer["body"].read())
        except exceptions.ClientError as exc:
            metadata = exc.response.get("ResponseMetadata", {})
            status = int(metadata.get("HTTPStatusCode") or 500)
            text = str(exc.response.get("Error", {}))
            headers = metadata.get("HTTPHeaders", {})
            raise http_wire.failure(self._title, status, text, headers) from exc
        except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as exc:
            raise ModelError(
                f"{self._title} has no credentials; add 'aws_access_key_id' and "
                "'aws_secret_access_key' to its params",
                "auth",
            ) from exc
        except (exceptions.BotoCoreError, exceptions.HTTPClientError) as exc:
            raise ModelAwayError(
                f"{self._title}: the provider cannot be reached: {type(exc).__name__}",
                retry_after_s=0,
            ) from exc
        except ValueError as exc:
            raise ModelError(f"{self._title}: the provider's answer is not JSON") from exc
        if not isinstance(content, dict):
            raise ModelError(f"{self._title}: the provider's answer is not a JSON object")
        return content
