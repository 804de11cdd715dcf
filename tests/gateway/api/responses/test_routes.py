"""Responses through the `openai` client, a real server and a scripted provider."""

from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from pydantic import BaseModel
from starlette.responses import JSONResponse

from tests.kit.models import manifest, served
from tests.kit.scripted_provider import chunk, completion, scripted

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
TOOL: Any = {"type": "function", "name": "f", "strict": True,
             "parameters": {"type": "object", "properties": {"a": {"type": "integer"}},
                            "required": ["a"], "additionalProperties": False}}  # fmt: skip
DONE = b"data: [DONE]\n\n"
USAGE = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}


class City(BaseModel):
    name: str


async def test_create_has_every_field_of_the_specification(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        answer = await caraway.client.responses.create(
            model="chat", input="Say hello", instructions="Be brief", temperature=0.5,
            max_output_tokens=9, metadata={"a": "b"},
        )  # fmt: skip
        assert answer.output_text == "hello"
        told = answer.to_dict()
        fields = """created_at id metadata model object output parallel_tool_calls reasoning store
            service_tier status temperature text tool_choice tools top_p truncation usage""".split()
        assert set(fields) <= set(told)
        assert (told["object"], told["status"], told["model"]) == ("response", "completed", "chat")
        item: Any = told["output"]
        assert item[0]["content"] == [
            {"type": "output_text", "annotations": [], "logprobs": [], "text": "hello"}
        ]
        assert answer.usage is not None
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 4)
        assert provider.requests[-1] == {
            "model": "gpt-4o", "stream": False, "temperature": 0.5, "max_completion_tokens": 9,
            "messages": [{"role": "developer", "content": "Be brief"},
                         {"role": "user", "content": "Say hello"}],
        }  # fmt: skip


async def test_a_stream_has_the_whole_set_of_events(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.streams = [[chunk("hel"), chunk("lo"), chunk(finish="stop"), USAGE, DONE]]
        stream = await caraway.client.responses.create(model="chat", input="Hi", stream=True)
        events = [event async for event in stream]
        assert [event.type for event in events] == [
            "response.created", "response.in_progress", "response.output_item.added",
            "response.content_part.added", "response.output_text.delta",
            "response.output_text.delta", "response.output_text.done",
            "response.content_part.done", "response.output_item.done", "response.completed",
        ]  # fmt: skip
        assert [event.sequence_number for event in events] == list(range(len(events)))
        last: Any = events[-1]
        assert last.response.output_text == "hello"
        assert last.response.usage.total_tokens == 3
        async with caraway.client.responses.stream(model="chat", input="Hi") as helper:
            final = await helper.get_final_response()
        assert final.output_text == "hello"


async def test_parsed_answers_and_calls_of_functions(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        responses = caraway.client.responses
        provider.answers = [completion('{"name": "Oslo"}')]
        parsed = await responses.parse(model="chat", input="?", text_format=City)
        assert parsed.output_parsed == City(name="Oslo")
        asked = provider.requests[-1]["response_format"]
        assert (asked["type"], asked["json_schema"]["name"]) == ("json_schema", "City")

        provider.answers = [completion(None, tool_calls=[CALL]), completion("done")]
        first = await responses.create(model="chat", input="go", tools=[TOOL])
        item: Any = first.output[0]
        assert (item.type, item.name, item.call_id) == ("function_call", "f", "c1")
        tools = provider.requests[-1]["tools"]
        assert tools[0]["function"]["name"] == "f"
        result: Any = {"type": "function_call_output", "call_id": "c1", "output": "42"}
        second = await responses.create(
            model="chat", previous_response_id=first.id, input=[result], tools=[TOOL]
        )
        assert second.output_text == "done"
        assert provider.requests[-1]["messages"] == [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
        ]

        head = {"index": 0, "id": "c1", "type": "function",
                "function": {"name": "f", "arguments": ""}}  # fmt: skip
        tail = {"index": 0, "function": {"arguments": '{"a": 1}'}}
        provider.streams = [[chunk("first"), chunk(tool_calls=[head]), chunk(tool_calls=[tail]),
                             chunk(finish="tool_calls"), DONE]]  # fmt: skip
        async with responses.stream(model="chat", input="go", tools=[TOOL]) as stream:
            types = [event.type async for event in stream]
            final: Any = await stream.get_final_response()
        assert "response.function_call_arguments.done" in types
        assert final.output[0].content[0].text == "first"
        assert final.output[1].parsed_arguments == {"a": 1}


async def test_responses_are_kept_for_their_key_alone(tmp_path: Path) -> None:
    keys = "runtime: {auth: {api-key: {keys: [one, two]}}}\n"
    async with scripted() as provider:
        async with served(tmp_path, manifest(provider.url) + keys, key="one") as caraway:
            mine, others = caraway.client.responses, caraway.client.with_options(api_key="two")
            first = await mine.create(model="chat", input="one")
            assert (await mine.retrieve(first.id)).output_text == "hello"
            with pytest.raises(openai.NotFoundError):
                await others.responses.retrieve(first.id)
            with pytest.raises(openai.BadRequestError, match="previous_response_id"):
                await others.responses.create(
                    model="chat", input="two", previous_response_id=first.id
                )
            await mine.create(model="chat", input="two", previous_response_id=first.id)
            assert [each["content"] for each in provider.requests[-1]["messages"]] == [
                "one", "hello", "two"
            ]  # fmt: skip
            unkept = await mine.create(model="chat", input="x", store=False)
            with pytest.raises(openai.NotFoundError):
                await mine.retrieve(unkept.id)
            await mine.delete(first.id)
            with pytest.raises(openai.NotFoundError):
                await mine.retrieve(first.id)


async def test_a_cut_answer_is_incomplete_and_a_broken_one_failed(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        provider.streams = [[chunk("long", "length"), DONE], [chunk("half"), DONE]]
        create: Any = caraway.client.responses.create
        events = [e async for e in await create(model="chat", input="x", stream=True)]
        assert events[-1].type == "response.incomplete"
        assert events[-1].response.incomplete_details.reason == "max_output_tokens"
        events = [e async for e in await create(model="chat", input="x", stream=True)]
        assert events[-1].type == "response.failed"
        assert events[-1].response.error.code == "model.failed"
        assert "complete" in events[-1].response.error.message


async def test_errors_have_a_status_of_their_own(tmp_path: Path) -> None:
    async with scripted() as provider, served(tmp_path, manifest(provider.url)) as caraway:
        async with httpx.AsyncClient(base_url=caraway.url) as client:
            none = await client.post("/v1/responses", json={"model": "none", "input": "x"})
            assert (none.status_code, none.content) == (404, b"")
            provider.answers = [JSONResponse({"error": {"message": "no"}}, 401)]
            refused = await client.post("/v1/responses", json={"model": "chat", "input": "x"})
            assert refused.status_code == 401
            assert refused.json()["error"]["code"] == "invalid_api_key"
            for body, param in WRONG:
                answer = await client.post("/v1/responses", json={"model": "chat", **body})
                assert answer.status_code == 400
                assert answer.json()["error"]["param"] == param


ORPHAN = {"type": "function_call_output", "call_id": "c", "output": "x"}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "input"),
    ({"input": []}, "input"),
    ({"input": ["x"]}, "input[0]"),
    ({"input": [ORPHAN]}, "input"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
    ({"input": "x", "background": True}, "background"),
    ({"input": "x", "conversation": "c"}, "conversation"),
    ({"input": "x", "include": ["x"]}, "include"),
    ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"input": "x", "tool_choice": {"type": "x"}}, "tool_choice"),
    ({"input": "x", "text": {"format": {"type": "x"}}}, "text.format"),
    ({"input": "x", "temperature": 9}, "temperature"),
    ({"input": "x", "previous_response_id": "resp_x"}, "previous_response_id"),
    ({"input": "x", "store": "yes"}, "store"),
]
