"""The events of a response, put together as a client does it, are the response at their end."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.chat.completeness import StreamCheck, check_completion
from caraway_ai.responses import answers
from caraway_ai.responses.events import ResponseEvents
from caraway_core.errors import ModelError

BODY = {"model": "m", "input": "x"}


def delta(finish: str | None = None, **said: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def fragment(
    index: int, id_: str | None = None, name: str | None = None, arguments: str = ""
) -> Any:
    call: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
    if id_ is not None:
        call["id"] = id_
    if name is not None:
        call["function"]["name"] = name
    return delta(tool_calls=[call])


def events_of(chunks: Sequence[Any]) -> list[dict[str, Any]]:
    check, told = StreamCheck("m", 1), ResponseEvents(answers.begun(BODY))
    found = list(told.first_events())
    for chunk in chunks:
        found += told.events_of_chunk(check.check_chunk(chunk))
    return [*found, *told.end()]


class Client:
    """Assembles a response from its events, and checks that each event refers to existing items."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.is_over = False

    def take(self, number: int, event: dict[str, Any]) -> None:
        assert event["sequence_number"] == number and not self.is_over
        match event["type"].removeprefix("response."):
            case "output_item.added":
                assert event["output_index"] == len(self.items)
                self.items.append({**event["item"], "content": []})
            case "content_part.added":
                content = self._item(event)["content"]
                assert event["content_index"] == len(content)
                content.append(dict(event["part"]))
            case "output_text.delta":
                self._part(event, "output_text")["text"] += event["delta"]
            case "refusal.delta":
                self._part(event, "refusal")["refusal"] += event["delta"]
            case "output_text.annotation.added":
                notes = self._part(event, "output_text")["annotations"]
                assert event["annotation_index"] == len(notes)
                notes.append(event["annotation"])
            case "function_call_arguments.delta":
                self._item(event)["arguments"] += event["delta"]
            case "output_text.done":
                assert self._part(event, "output_text")["text"] == event["text"]
            case "refusal.done":
                assert self._part(event, "refusal")["refusal"] == event["refusal"]
            case "content_part.done":
                assert self._part(event, event["part"]["type"]) == event["part"]
            case "function_call_arguments.done":
                assert self._item(event)["arguments"] == event["arguments"]
            case "output_item.done":
                self._check_done(self.items[event["output_index"]], event["item"])
            case "completed" | "incomplete":
                self.is_over = True
                # Only the last thing that a model says can be cut.
                ends = [item["status"] for item in self.items]
                assert ends == ["completed"] * (len(ends) - 1) + [event["response"]["status"]]
                assert [item["id"] for item in self.items] == [
                    item["id"] for item in event["response"]["output"]
                ]

    def _item(self, event: dict[str, Any]) -> dict[str, Any]:
        item: dict[str, Any] = self.items[event["output_index"]]
        assert item["id"] == event["item_id"]
        return item

    def _part(self, event: dict[str, Any], kind: str) -> dict[str, Any]:
        part: dict[str, Any] = self._item(event)["content"][event["content_index"]]
        assert part["type"] == kind
        return part

    def _check_done(self, item: dict[str, Any], told: dict[str, Any]) -> None:
        if item["type"] == "message":
            assert item["content"] == told["content"]
        else:
            assert (item["call_id"], item["arguments"]) == (told["call_id"], told["arguments"])
        item["status"] = told["status"]


def replayed(events: Sequence[dict[str, Any]]) -> Client:
    client = Client()
    for number, event in enumerate(events):
        client.take(number, event)
    assert client.is_over
    return client


NOTE = {"type": "url_citation", "url_citation": {"url": "u", "title": "t"}}
TEXTS = st.text(max_size=4)
CHUNKS = st.lists(
    st.one_of(
        st.builds(lambda text: delta(content=text), TEXTS),
        st.builds(lambda text: delta(refusal=text), TEXTS),
        st.builds(lambda text: delta(content=text, annotations=[NOTE]), TEXTS),
        st.builds(
            lambda index, text: fragment(index, f"id{index}", f"f{index}", text),
            st.integers(0, 2), TEXTS,
        ),
        st.just({"choices": [], "usage": {"total_tokens": 3}}),
        st.just({"choices": [{"index": 1, "delta": {"content": "of another choice"}}]}),
    ),
    max_size=12,
)  # fmt: skip


@given(CHUNKS, st.sampled_from(["stop", "length", "tool_calls", "content_filter"]))
def test_a_client_that_follows_events_has_the_response(chunks: list[Any], finish: str) -> None:
    events = events_of([*chunks, delta(finish)])
    client = replayed(events)
    said = [c["choices"][0]["delta"] for c in chunks if c["choices"]
            and not c["choices"][0]["index"]]  # fmt: skip
    parts = [part for item in client.items for part in item["content"]]
    for kind, field, name in (
        ("output_text", "text", "content"),
        ("refusal", "refusal", "refusal"),
    ):
        assert "".join(part[field] for part in parts if part["type"] == kind) == "".join(
            each.get(name) or "" for each in said
        )
    wanted: dict[int, str] = {}
    for each in said:
        for call in each.get("tool_calls") or ():
            wanted.setdefault(call["index"], "")
            wanted[call["index"]] += call["function"]["arguments"]
    found = {i["call_id"]: i["arguments"] for i in client.items if i["type"] == "function_call"}
    assert found == {f"id{index}": arguments for index, arguments in wanted.items()}
    is_cut = finish in ("length", "content_filter")
    assert events[-1]["type"] == ("response.incomplete" if is_cut else "response.completed")


def test_an_empty_answer_has_an_empty_text() -> None:
    client = replayed(events_of([delta("stop")]))
    assert client.items[0]["content"] == [answers.text_part("")]


def test_a_text_after_a_refusal_is_a_part_of_its_own() -> None:
    client = replayed(events_of([delta(refusal="no"), delta(content="but"), delta("stop")]))
    assert [part["type"] for part in client.items[0]["content"]] == ["refusal", "output_text"]


def test_a_name_that_comes_after_the_id_is_kept() -> None:
    chunks = [fragment(0, "1"), fragment(0, None, "f", "{"), fragment(0, arguments="}")]
    output = events_of([*chunks, delta("tool_calls")])[-1]["response"]["output"]
    assert [(each["name"], each["arguments"]) for each in output] == [("f", "{}")]


def test_a_stream_that_fails_has_what_was_said() -> None:
    told = ResponseEvents(answers.begun(BODY))
    list(told.first_events())
    list(told.events_of_chunk(delta(content="so far")))
    failed = list(told.fail({"message": "gone", "code": None}))
    assert [each["type"] for each in failed] == ["response.failed"]
    response = failed[0]["response"]
    assert response["status"] == "failed"
    assert response["error"] == {"code": "server_error", "message": "gone"}
    assert response["output"][0]["content"][0]["text"] == "so far"


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
        st.sampled_from(["id", "name", "arguments", "function", "index", "type", "url_citation"]),
        inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
ODD_CALL = st.fixed_dictionaries(
    {"function": st.dictionaries(st.sampled_from(["name", "arguments"]), ODD)},
    optional={"id": ODD, "index": ODD},
)
ODD_DELTA = st.dictionaries(
    st.sampled_from(["content", "refusal", "annotations", "tool_calls", "role"]),
    ODD | st.lists(ODD_CALL, max_size=2), max_size=3,
)  # fmt: skip
ODD_CHUNK = st.fixed_dictionaries(
    {"choices": st.lists(st.fixed_dictionaries({"delta": ODD_DELTA}), max_size=2)},
    optional={"usage": ODD},
)


@given(st.lists(ODD_CHUNK, max_size=4))
def test_any_chunks_are_a_response_or_damaged(chunks: list[Any]) -> None:
    try:
        events = events_of([*chunks, delta("stop")])
    except ModelError as exc:
        assert "is damaged" in exc.message
        return
    replayed(events)


@given(ODD_DELTA, ODD)
def test_any_answer_is_a_response_or_damaged(message: dict[str, Any], usage: Any) -> None:
    answer = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
    try:
        answer = check_completion(answer, "m")
    except ModelError as exc:
        assert "is damaged" in exc.message
        return
    assert answers.answered(answers.begun(BODY), answer)["status"] == "completed"
