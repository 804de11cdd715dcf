"""Models that executors host: equal ones have one key, and calls cross as they are."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai import hosting
from caraway_ai.hosting import HostedChat, HostedChatSpec
from caraway_ai.local.sent_files import SentFile
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from caraway_core.manifest.models import ModelFile, ModelResources
from caraway_core.protocols.hosting import HostRoom
from caraway_core.tables import ResultPlace

MODEL = ModelSpec("m", "file", "m.gguf", {"a": "1", "b": "2"}, base_dir=Path("/base"))
SENT = SentFile("m.gguf", 3, "ab" * 32, ResultPlace("file", "/store"), ())


def key(**changed: Any) -> str:
    sent = changed.pop("sent", ())
    return HostedChatSpec(replace(MODEL, **changed), sent).key


def test_what_executors_choose_themselves_is_no_part_of_the_key() -> None:
    assert key() == key(cache_dir=Path("/other")) == key(gpus=(1, 2))
    # The order in which a manifest writes params makes no other model.
    assert key() == key(params={"b": "2", "a": "1"})


@pytest.mark.parametrize(
    "changed",
    [{"name": "n"}, {"provider": "huggingface"}, {"model": "n.gguf"}, {"params": {"a": "1"}},
     {"params": {"a": "1", "b": "3"}}, {"base_dir": Path("/b")}, {"files": (ModelFile("x"),)},
     {"resources": ModelResources(cpu=1)}, {"sent": (SENT,)},
     {"sent": (replace(SENT, sha256="cd" * 32),)}],
)  # fmt: skip
def test_another_model_has_another_key(changed: dict[str, Any]) -> None:
    assert key(**changed) != key()
    assert key(**changed).startswith("chat-") and "hunter2" not in key(params={"a": "hunter2"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=6,
)  # fmt: skip


class Echo:
    """Answers with the request."""

    progress = "echoing"

    async def chat(self, request: Any) -> Any:
        return {"asked": request}

    async def stream(self, request: Any) -> Any:
        for each in request["messages"]:
            yield {"chunk": each}


async def answers(call: bytes) -> list[Any]:
    hosted = HostedChat(MODEL)
    chat: Any = Echo()
    hosted._chat = chat
    return [hosting.chunk_of(part) async for part in hosted.answer(call)]


@given(st.lists(JSON, max_size=3))
def test_calls_and_answers_cross(messages: list[Any]) -> None:
    request = {"messages": messages}
    whole = asyncio.run(answers(hosting.call_of(request, is_stream=False)))
    assert whole == [{"asked": request}]
    chunks = asyncio.run(answers(hosting.call_of(request, is_stream=True)))
    assert chunks == [{"chunk": each} for each in messages]


@pytest.mark.parametrize("value", [2**64, -(2**64), "\ud800", object()])
def test_what_cannot_cross_is_a_mistake_of_the_caller(value: object) -> None:
    with pytest.raises(ModelInputError, match="cannot be sent as JSON"):
        hosting.call_of({"messages": [value]}, is_stream=True)


async def test_a_model_that_is_not_loaded_answers_nothing(tmp_path: Path) -> None:
    room = HostRoom(tmp_path, (3,))
    hosted = HostedChatSpec(replace(MODEL, base_dir=tmp_path, params={})).build(room)
    with pytest.raises(ModelAwayError, match="model 'm' is not loaded"):
        async for _ in hosted.answer(hosting.call_of({}, is_stream=False)):
            pass
    with pytest.raises(ModelError, match="let its scheduler have the file") as caught:
        await hosted.load()
    assert caught.value.type == "not_found"
    await hosted.aclose()


async def test_files_of_a_lost_store_are_told_with_the_model(tmp_path: Path) -> None:
    lost = replace(SENT, place=ResultPlace("file", str(tmp_path / "none")))
    hosted = HostedChat(replace(MODEL, base_dir=tmp_path, cache_dir=tmp_path), (lost,), "k")
    with pytest.raises(ModelError, match=r"model 'm': 'm\.gguf' is damaged"):
        await hosted.load()
    assert list(tmp_path.glob("k-*")) == []
    await hosted.aclose()
