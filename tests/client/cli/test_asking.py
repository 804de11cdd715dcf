"""`caraway nsql` and `caraway chat`."""

import json
from typing import Any

import pytest

from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime

ANSWER: dict[str, Any] = {
    "sql": "SELECT count(*) AS n FROM orders",
    "schema": {"fields": [{"name": "n", "data_type": "Int64"}]},
    "data": [{"n": 42}],
    "row_count": 1,
}
MODELS = Answer(body=json.dumps({"data": [{"id": "local", "object": "model"}]}).encode())


def stream(*parts: str, end: bool = True) -> Answer:
    choices: list[Any] = [
        {"index": 0, "delta": {"content": part}, "finish_reason": None} for part in parts
    ]
    choices += [{"index": 0, "delta": {}, "finish_reason": "stop"}] if end else []
    frames = [f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices]
    frames.insert(0, ": keep-alive\n\n")
    frames += ["data: [DONE]\n\n"] if end else []
    return Answer(body="".join(frames).encode(), headers={"Content-Type": "text/event-stream"})


def test_nsql_prints_the_rows_and_tells_the_statement(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/nsql", Answer(body=json.dumps(ANSWER).encode()))
    shown = ask("nsql", "how many orders?", "--dataset", "orders", "--model", "local")
    assert shown.exit_code == 0
    assert shown.stdout.split() == ["n", "42"]
    assert ANSWER["sql"] in shown.stderr
    assert json.loads(runtime.asked[0].body) == {
        "query": "how many orders?", "datasets": ["orders"], "model": "local",
        "sample_data_enabled": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("format", "body", "printed"),
    [
        ("json", json.dumps(ANSWER), '[{"n": 42}]\n'),
        ("sql", "SELECT 1", "SELECT 1\n"),
    ],
)
def test_nsql_formats(
    ask: Command, runtime: FakeRuntime, format: str, body: str, printed: str
) -> None:
    runtime.answers("POST /v1/nsql", Answer(body=body.encode()))
    shown = ask("nsql", "how many?", "--format", format, "--no-samples")
    assert (shown.exit_code, shown.stdout) == (0, printed)
    assert json.loads(runtime.asked[0].body)["sample_data_enabled"] is False


def test_nsql_tells_what_went_wrong(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/nsql", Answer(400, b"model 'x' not found; known: local"))
    shown = ask("nsql", "how many?", "--model", "x")
    assert shown.exit_code == 1
    assert "model 'x' not found; known: local" in shown.stderr


def test_chat_prints_the_answer_as_it_arrives(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/models", MODELS)
    runtime.answers("POST /v1/chat/completions", stream("\n[sql {}]\n", "There are ", "42"))
    shown = ask("chat", "how many orders?")
    assert (shown.exit_code, shown.stdout) == (0, "\n[sql {}]\nThere are 42\n")
    request = runtime.asked[-1]
    assert request.headers["x-caraway-completion-progress"] == "enabled"
    assert json.loads(request.body) == {
        "model": "local", "stream": True,
        "messages": [{"role": "user", "content": "how many orders?"}],
    }  # fmt: skip


def test_chat_says_that_there_is_no_such_model(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/chat/completions", Answer(404, b""))
    shown = ask("chat", "how many orders?", "--model", "nope")
    assert shown.exit_code == 1
    assert shown.stderr == "error: there is no model 'nope'; `caraway models` lists them\n"


def test_a_conversation_remembers(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/chat/completions", stream("first"))
    shown = ask("chat", "--model", "m", "--no-tools", stdin="one\ntwo\n\nnever asked\n")
    assert shown.stdout == "first\nfirst\n"
    first, second = runtime.asked
    assert "x-caraway-completion-progress" not in first.headers
    roles = [each["role"] for each in json.loads(second.body)["messages"]]
    assert roles == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (stream("The ans", end=False), "the answer ended before it was complete"),
        (
            Answer(body=b'data: {"type":"error","error":{"message":"the provider is away"}}\n\n'),
            "the provider is away",
        ),
        (Answer(body=b"data: {broken\n\n"), "not JSON"),
    ],
)
def test_an_answer_that_fails(
    ask: Command, runtime: FakeRuntime, answer: Answer, told: str
) -> None:
    runtime.answers("POST /v1/chat/completions", answer)
    shown = ask("chat", "hello", "--model", "m")
    assert shown.exit_code == 1
    assert told in shown.stderr


def test_one_of_several_models_must_be_chosen(ask: Command, runtime: FakeRuntime) -> None:
    several = {"data": [{"id": "b"}, {"id": "a"}]}
    runtime.answers("GET /v1/models", Answer(body=json.dumps(several).encode()))
    shown = ask("chat", "hello")
    assert shown.exit_code == 2
    assert "choose a model: a, b" in shown.stderr
