"""One call of a model by the responses API of its provider."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from caraway_ai.protocols import JsonObject
from caraway_ai.responses import answers
from caraway_ai.responses.preparing import prepared
from caraway_ai.tool_loop import ResponsesLoop
from caraway_assist.models.metering import CallRecord
from caraway_assist.models.states import LoadedModel
from caraway_scheduler.history.tasks import TaskHistory
from caraway_serving import spans


class ResponsesCall:
    """Answers one request, and records it."""

    def __init__(
        self, loaded: LoadedModel, loop: ResponsesLoop, record: CallRecord, history: TaskHistory
    ) -> None:
        self._loaded = loaded
        self._loop = loop
        self._record = record
        self._history = history

    @property
    def said(self) -> Sequence[JsonObject]:
        """After the end: every item since the request."""
        return self._loop.said

    async def respond(self, request: JsonObject) -> JsonObject:
        """Return the response, with the tools of the model.

        Raises:
            ModelError: as `ResponsesModel.respond`.
        """
        full = self._begin(request)
        token = spans.current.set(self._record.span)
        try:
            answer = await self._loop.respond(full)
            self._take(answer)
            return answer
        except BaseException as exc:
            self._record.failed(exc)
            raise
        finally:
            spans.current.reset(token)
            self._record.add_to(self._history)

    async def events(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Yield the events of the response, with the tools of the model.

        Raises: as `respond`.
        """
        full = self._begin(request)
        spans.current.set(self._record.span)
        try:
            async with aclosing(self._loop.events(full)) as events:
                async for event in events:
                    if str(event["type"]).endswith(".delta"):
                        self._record.first()
                    if isinstance(event.get("response"), dict):
                        self._take(event["response"])
                    yield event
        except BaseException as exc:
            self._record.failed(exc)
            raise
        finally:
            self._record.add_to(self._history)

    def _begin(self, request: JsonObject) -> JsonObject:
        if self._history.settings.captures_output:
            self._record.input = _text(request.get("input"))
        return prepared(request, self._loaded.defaults, self._loaded.system_prompt)

    def _take(self, response: JsonObject) -> None:
        self._record.take_usage(answers.chat_usage(response.get("usage")))
        if self._history.settings.captures_output:
            self._record.output = _text(response.get("output"))


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
