"""The route of `/v1/embeddings`, as OpenAI defines it."""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from caraway_core.errors import CarawayError, InvalidRequestError
from caraway_core.protocols.embedding import EmbeddedTexts
from caraway_gateway.api import app_state
from caraway_serving import bodies, errors, parsing, scopes, shapes, streaming

router = APIRouter(tags=["Embeddings"])
MOST_INPUTS = 2048
MOST_CHARACTERS = 1_048_576
"""Of all inputs of a request together."""
_MOST_TOKENS = 300_000
"""As `MOST_CHARACTERS`."""
_Text = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
_Tokens = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1, max_length=_MOST_TOKENS)]
_HINT = 'send {"model": "builtin:minilm", "input": "a text"}'


class EmbeddingsRequest(BaseModel):
    """A request for the vectors of texts."""

    model_config = ConfigDict(extra="ignore", strict=True)

    model: str = Field(min_length=1, description="A model of `embeddings` in the manifest.")
    input: (
        _Text
        | _Tokens
        | Annotated[list[_Text] | list[_Tokens], Field(min_length=1, max_length=MOST_INPUTS)]
    ) = Field(description="A text, or up to 2048 of them; or the numbers of tokens.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1, le=65_536)
    user: str | None = None


class EmbeddingItem(BaseModel):
    """The vector of one text."""

    object: Literal["embedding"] = "embedding"
    embedding: list[float] | str
    index: int


class EmbeddingsUsage(BaseModel):
    """The number of tokens that were embedded."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    """The vectors of texts, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[EmbeddingItem]
    model: str
    usage: EmbeddingsUsage


@router.post(
    "/v1/embeddings",
    response_model=EmbeddingsAnswer,
    responses={
        400: {"description": "The request is invalid.", "content": shapes.ERROR},
        404: {"description": "There is no such model.", "content": shapes.ERROR},
        413: {"description": "The body is too large.", "content": shapes.ERROR},
        429: {"description": "Too many texts wait for the model.", "content": shapes.ERROR},
        500: {"description": "The model failed.", "content": shapes.ERROR},
        503: {"description": "The model is loading or away.", "content": shapes.ERROR},
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": EmbeddingsRequest.model_json_schema()}},
        }
    },
)
async def create_embeddings(request: Request) -> Response:
    """Embed texts with a model of the manifest."""
    services = app_state.services(request)
    try:
        body = await bodies.read(request, services.max_body_bytes)
        asked = await parsing.parsed(request, body, _parsed)
        items, is_tokens = _items(asked)
        span = replace(scopes.span(request), principal=scopes.principal(request).id)
        work = services.embeddings.embed(
            asked.model,
            items,
            span.child(),
            is_tokens=is_tokens,
            dimensions=asked.dimensions,
        )
        texts = await streaming.unless_gone(request, work)
    except (CarawayError, errors.RefusedRequestError) as exc:
        return errors.as_error(exc)
    except ClientDisconnect:
        return errors.CLIENT_GONE
    return Response(_answer(asked, texts), media_type="application/json")


def _parsed(body: bytes) -> EmbeddingsRequest:
    content = parsing.json(body, _HINT)
    if isinstance(content, dict):
        _check_size(content.get("input"))
    try:
        return EmbeddingsRequest.model_validate(content)
    except ValidationError as exc:
        raise InvalidRequestError(_problem(content, exc)) from exc


def _check_size(given: object) -> None:
    """Refuse inputs that are too many or too long together, before each of them is looked at.

    Raises:
        InvalidRequestError: they are.
    """
    if not isinstance(given, list) or not given:
        return
    if len(given) > MOST_INPUTS and not isinstance(given[0], int):
        raise InvalidRequestError(
            f"'input' has {len(given)} texts; send at most {MOST_INPUTS} in one request"
        )
    characters = sum(len(each) for each in given if isinstance(each, str))
    if characters > MOST_CHARACTERS:
        raise InvalidRequestError(
            f"the texts of 'input' have {characters} characters; send at most {MOST_CHARACTERS} in "
            "one request"
        )
    tokens = sum(len(each) if isinstance(each, list) else 1 for each in given)
    if tokens > _MOST_TOKENS:
        raise InvalidRequestError(
            f"'input' has {tokens} tokens; send at most {_MOST_TOKENS} in one request"
        )


def _problem(content: object, exc: ValidationError) -> str:
    """Name the first problem; those of `input` are too many kinds to name each of them."""
    details = exc.errors(include_url=False, include_input=False)[0]
    key = str(details["loc"][0]) if details["loc"] else ""
    if key != "input":
        return f"'{key}': {details['msg'].lower()}" if key else f"the body is no object; {_HINT}"
    if details["type"] == "missing":
        return f"'input' is missing; {_HINT}"
    given = content.get("input") if isinstance(content, dict) else None
    if any(isinstance(each, str) and len(each) > MOST_CHARACTERS for each in _each(given)):
        return f"a text of 'input' has more than {MOST_CHARACTERS} characters; cut it"
    return "'input' must be a text or a list of texts that are not empty, or lists of tokens"


def _each(given: object) -> Sequence[object]:
    return given if isinstance(given, list) else [given]


def _items(asked: EmbeddingsRequest) -> tuple[Any, bool]:
    given = asked.input
    if isinstance(given, str):
        return [given], False
    if isinstance(given[0], int):
        return [given], True
    return given, not isinstance(given[0], str)


def _answer(asked: EmbeddingsRequest, texts: EmbeddedTexts) -> bytes:
    vectors = texts.vectors
    flat = vectors.flatten().to_numpy(zero_copy_only=False)
    rows = flat.reshape(len(vectors), vectors.type.list_size).astype("<f4", copy=False)
    if asked.encoding_format == "base64":
        encoded: list[Any] = [base64.b64encode(row.tobytes()).decode() for row in rows]
    else:
        encoded = list(rows)
    content = {
        "object": "list",
        "data": [
            {"object": "embedding", "embedding": each, "index": index}
            for index, each in enumerate(encoded)
        ],
        "model": asked.model,
        "usage": {"prompt_tokens": texts.token_count, "total_tokens": texts.token_count},
    }
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
