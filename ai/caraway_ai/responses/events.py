"""Turns the chunks of a chat stream into the events of a response stream."""

from collections.abc import Iterator
from typing import Any

from caraway_ai.protocols import ChatChunk, JsonObject
from caraway_ai.responses import answers


class _Text:
    """The message that is being said."""

    def __init__(self, index: int) -> None:
        self.id = answers.new_id("msg")
        self.index = index
        self.text: list[str] = []
        self.refusal: list[str] = []
        self.annotations: list[JsonObject] = []
        self.text_index: int | None = None
        self.refusal_index: int | None = None

    @property
    def next_index(self) -> int:
        """The number of the next part of the message."""
        return sum(index is not None for index in (self.text_index, self.refusal_index))

    @property
    def text_where(self) -> JsonObject:
        assert self.text_index is not None
        return self.where(self.text_index)

    def where(self, content_index: int) -> JsonObject:
        return {"item_id": self.id, "output_index": self.index, "content_index": content_index}

    def item(self) -> JsonObject:
        content = []
        if self.text_index is not None:
            content.append(answers.text_part("".join(self.text), self.annotations))
        if self.refusal_index is not None:
            refusal = {"type": "refusal", "refusal": "".join(self.refusal)}
            content.insert(self.refusal_index, refusal)
        return answers.message_item(self.id, "completed", content)


class _Call:
    """A call of a function that is being said."""

    def __init__(self, index: int, call_id: str, name: str) -> None:
        self.id = answers.new_id("fc")
        self.index = index
        self.call_id = call_id
        self.name = name
        self.arguments: list[str] = []

    def item(self, status: str = "completed") -> JsonObject:
        arguments = "".join(self.arguments)
        return answers.call_item(self.id, status, self.call_id, self.name, arguments)


class ResponseEvents:
    """The events of one stream, with their numbers."""

    def __init__(self, response: JsonObject) -> None:
        self.response = response
        self._number = 0
        self._text: _Text | None = None
        self._calls: dict[int, _Call] = {}
        self._items: list[_Text | _Call] = []
        self._reason: str | None = None
        self._usage: object = None

    def first_events(self) -> Iterator[JsonObject]:
        """Yield the first events."""
        yield self._event("response.created", response=self.response)
        yield self._event("response.in_progress", response=self.response)

    def events_of_chunk(self, chunk: ChatChunk) -> Iterator[JsonObject]:
        """Yield the events of one chunk."""
        if chunk.get("usage"):
            self._usage = chunk["usage"]
        for choice in chunk["choices"]:
            if choice["index"]:
                continue
            delta = choice["delta"]
            if delta.get("content"):
                yield from self._say(delta["content"])
            if delta.get("refusal"):
                yield from self._refuse(delta["refusal"])
            for note in delta.get("annotations") or ():
                yield from self._annotate(note)
            for call in delta.get("tool_calls") or ():
                yield from self._call(call)
            self._reason = choice["finish_reason"] or self._reason

    def end(self) -> Iterator[JsonObject]:
        """Yield the last events."""
        if not self._items:
            yield from self._open_text()
        output = self._output(answers.item_status(self._reason))
        for each, item in zip(self._items, output, strict=True):
            close = self._close_text(each) if isinstance(each, _Text) else self._close_call(each)
            yield from close
            yield self._event("response.output_item.done", output_index=each.index, item=item)
        self.response = answers.finished(self.response, output, self._reason, self._usage)
        yield self._event(f"response.{self.response['status']}", response=self.response)

    def fail(self, error: JsonObject) -> Iterator[JsonObject]:
        """Yield the last event of a stream that failed."""
        code = error.get("code") or "server_error"
        told = {"code": code, "message": error["message"]}
        output = self._output("incomplete")
        self.response = {**self.response, "status": "failed", "error": told, "output": output}
        yield self._event("response.failed", response=self.response)

    def _output(self, last_status: str) -> list[JsonObject]:
        """Return the items. All but the last one are complete: a model says one after another."""
        documents = [each.item() for each in self._items]
        if documents:
            documents[-1]["status"] = last_status
        return documents

    def _say(self, text: str) -> Iterator[JsonObject]:
        yield from self._open_text()
        assert self._text is not None
        self._text.text.append(text)
        yield self._event(
            "response.output_text.delta", **self._text.text_where, delta=text, logprobs=[]
        )

    def _open_text(self) -> Iterator[JsonObject]:
        if self._text is None:
            yield from self._open_message()
        message = self._text
        assert message is not None
        if message.text_index is not None:
            return
        message.text_index = message.next_index
        part = answers.text_part("")
        yield self._event("response.content_part.added", **message.text_where, part=part)

    def _open_message(self) -> Iterator[JsonObject]:
        self._text = _Text(len(self._items))
        self._items.append(self._text)
        item = answers.message_item(self._text.id, "in_progress", [])
        yield self._event("response.output_item.added", output_index=self._text.index, item=item)

    def _refuse(self, text: str) -> Iterator[JsonObject]:
        if self._text is None:
            yield from self._open_message()
        message = self._text
        assert message is not None
        if message.refusal_index is None:
            message.refusal_index = message.next_index
            part = {"type": "refusal", "refusal": ""}
            where = message.where(message.refusal_index)
            yield self._event("response.content_part.added", **where, part=part)
        where = message.where(message.refusal_index)
        message.refusal.append(text)
        yield self._event("response.refusal.delta", **where, delta=text)

    def _annotate(self, given: Any) -> Iterator[JsonObject]:
        yield from self._open_text()
        assert self._text is not None
        note = answers.annotation(given)
        self._text.annotations.append(note)
        yield self._event(
            "response.output_text.annotation.added", **self._text.text_where,
            annotation_index=len(self._text.annotations) - 1, annotation=note,
        )  # fmt: skip

    def _call(self, given: JsonObject) -> Iterator[JsonObject]:
        function = given.get("function") or {}
        call = self._calls.get(given["index"])
        if call is None:
            id_ = given.get("id") or answers.new_id("call")
            call = _Call(len(self._items), id_, function.get("name") or "")
            self._calls[given["index"]] = call
            self._items.append(call)
            item = call.item("in_progress")
            yield self._event("response.output_item.added", output_index=call.index, item=item)
        # Some providers send the name after the id.
        call.name = call.name or function.get("name") or ""
        if part := function.get("arguments"):
            call.arguments.append(part)
            yield self._event(
                "response.function_call_arguments.delta", item_id=call.id,
                output_index=call.index, delta=part,
            )  # fmt: skip

    def _close_text(self, message: _Text) -> Iterator[JsonObject]:
        content = message.item()["content"]
        for index, part in enumerate(content):
            where = message.where(index)
            if part["type"] == "refusal":
                yield self._event("response.refusal.done", **where, refusal=part["refusal"])
            else:
                yield self._event(
                    "response.output_text.done", **where, text=part["text"], logprobs=[]
                )
            yield self._event("response.content_part.done", **where, part=part)

    def _close_call(self, call: _Call) -> Iterator[JsonObject]:
        yield self._event(
            "response.function_call_arguments.done", item_id=call.id, output_index=call.index,
            name=call.name, arguments="".join(call.arguments),
        )  # fmt: skip

    def _event(self, type_: str, **fields: object) -> JsonObject:
        event = {"type": type_, "sequence_number": self._number, **fields}
        self._number += 1
        return event
