"""The protocol of chat models, and the shapes of what goes in and out.

Requests, answers and chunks are JSON objects of the OpenAI chat wire, as plain dictionaries: what
a client sends reaches a provider that speaks this wire unchanged, and costs no conversion.
"""

from collections.abc import AsyncGenerator
from typing import Any, Protocol, runtime_checkable

JsonObject = dict[str, Any]
ChatRequest = JsonObject
"""The body of `POST /v1/chat/completions`. `model` and `stream` are set by the provider."""
ChatCompletion = JsonObject
"""An object `chat.completion`."""
ChatChunk = JsonObject
"""An object `chat.completion.chunk`."""


class ChatModel(Protocol):
    """A model that is loaded. All its methods run on one event loop; calls may overlap.

    Neither a request nor what is in it is changed.
    """

    async def check(self) -> None:
        """Check that the model can be called, without a call that costs money.

        Raises:
            ModelError: it cannot.
        """
        ...

    async def chat(self, request: ChatRequest) -> ChatCompletion:
        """Answer a request, whatever its `stream` says.

        Raises:
            ModelInputError: the request is wrong, or asks for what the model cannot do.
            ModelAwayError: the provider limits the rate, is overloaded or does not respond.
            ModelError: the provider refused or failed, or its answer is not complete.
        """
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[ChatChunk, None]:
        """Yield the chunks of an answer; the call begins with the first one requested.

        A stream that ends by itself is complete: each of its choices had a `finish_reason`. The
        last chunk has `usage`, where the provider tells it, and no choices. Closing the generator
        stops the call of the provider.

        Raises: as `chat`, also between chunks.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and processes; calls under way fail."""
        ...


class ResponsesModel(Protocol):
    """A model whose provider has the responses API itself.

    Nothing is kept by the provider: a request has the whole conversation as its `input`.
    """

    async def respond(self, request: JsonObject) -> JsonObject:
        """Return the response to a request, which is `completed` or `incomplete`.

        Raises: as `ChatModel.chat`.
        """
        ...

    def events(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Yield the events of a response as the provider sends them.

        A stream that ends by itself ends with `response.completed` or `response.incomplete`.
        Closing the generator stops the call of the provider.

        Raises: as `ChatModel.chat`, also between events.
        """
        ...


@runtime_checkable
class HasResponses(Protocol):
    """A chat model whose provider may have the responses API, too."""

    @property
    def responses(self) -> ResponsesModel | None: ...
