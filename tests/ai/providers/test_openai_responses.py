"""Where the responses API of a provider is called, and what of a conversation it gets."""

import pytest
from starlette.responses import JSONResponse

from caraway_ai.protocols import HasResponses
from caraway_ai.providers.openai_responses import sendable
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError
from tests.ai.providers.recording import Recorder
from tests.kit.listening import listening
from tests.kit.models import built
from tests.kit.scripted_responses import SEARCH, THOUGHT, call, message, response


@pytest.mark.parametrize(
    ("provider", "path", "params", "called"),
    [
        ("openai", "/v1", {"responses_api": "enabled"}, "/v1/responses"),
        ("groq", "/v1", {"responses_api": "enabled"}, "/v1/responses"),
        ("openai", "/v1", {}, None),
        ("azure", "", {}, "/openai/v1/responses"),
        ("azure", "/openai/v1", {}, "/openai/v1/responses"),
        ("azure", "", {"responses_api": "disabled"}, None),
        ("anthropic", "", {}, None),
    ],
)
async def test_providers_are_called_where_they_have_the_api(
    provider: str, path: str, params: dict[str, str], called: str | None
) -> None:
    server = Recorder({called: JSONResponse(response(message()))} if called else {})
    async with listening(server.app) as url:
        model = built(provider, f"{url}{path}", "the-model", **params)
        native = model.responses if isinstance(model, HasResponses) else None
        assert (native is not None) is (called is not None)
        if native is not None:
            assert (await native.respond({"input": "x"}))["status"] == "completed"
            assert (server.seen[-1].url.path, server.seen[-1].url.query) == (called, "")
            assert server.bodies[-1]["model"] == "the-model"
        await model.aclose()


def test_openai_itself_has_it() -> None:
    model = ModelSpec("m", "openai", "gpt-4o", {"openai_api_key": "k"}).build()
    assert isinstance(model, HasResponses)
    assert model.responses is not None
    with pytest.raises(ModelError, match="enabled or disabled"):
        built("openai", "http://localhost/v1", responses_api="yes")


def test_thoughts_are_sent_back_encrypted_or_not_at_all() -> None:
    asked = {"role": "user", "content": "x"}
    plain = {"id": "rs_2", "type": "reasoning", "summary": []}
    result = {"type": "function_call_output", "call_id": "c1", "output": "1"}
    whole = [asked, THOUGHT, SEARCH, message(), THOUGHT, call("f"), result]
    assert sendable(whole) == whole
    without = {name: value for name, value in call("f").items() if name != "id"}
    said = {name: value for name, value in message().items() if name != "id"}
    assert sendable([asked, plain, SEARCH, call("f"), result, said]) == [
        asked, without, result, said
    ]  # fmt: skip
    # The item that it led to is not there any more.
    assert sendable([THOUGHT, THOUGHT, message(), THOUGHT]) == [THOUGHT, message()]
    assert sendable([plain, message(), asked, message()]) == [said, asked, message()]
