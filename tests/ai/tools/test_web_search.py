"""The tool that searches the web."""

import json
from typing import Any

import httpx
import pytest

from caraway_ai.tools.protocol import ToolCaller
from caraway_ai.tools.web_search import WebSearchTool
from caraway_core.errors import ToolError
from caraway_core.manifest.values.declared_tools import DeclaredTool


def tool(answer: httpx.Response, seen: list[httpx.Request], **params: str) -> WebSearchTool:
    def answered(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answer

    declared = DeclaredTool("web", "websearch", params=params)
    return WebSearchTool(declared, params, httpx.MockTransport(answered))


async def test_the_engine_is_asked_and_its_sources_are_told() -> None:
    page = {"url": "https://a.test", "title": "A", "date": "2026-11-01", "snippet": "x"}
    body: dict[str, Any] = {
        "choices": [{"message": {"role": "assistant", "content": "It rains [1]."}}],
        "search_results": [page, "https://b.test", 7, {"title": "no address"}],
    }
    seen: list[httpx.Request] = []
    web = tool(httpx.Response(200, json=body), seen, perplexity_auth_token="k", model="sonar-pro")
    assert await web.call({"query": "the weather"}, ToolCaller()) == {
        "answer": "It rains [1].",
        "sources": [
            {"url": "https://a.test", "title": "A", "date": "2026-11-01"},
            {"url": "https://b.test"},
        ],
    }
    assert str(seen[0].url) == "https://api.perplexity.ai/chat/completions"
    assert seen[0].headers["authorization"] == "Bearer k"
    assert json.loads(seen[0].content) == {
        "model": "sonar-pro", "messages": [{"role": "user", "content": "the weather"}]
    }  # fmt: skip


@pytest.mark.parametrize("body", [{}, [], "text", {"choices": []}, {"choices": [{"message": {}}]}])
async def test_an_answer_of_another_shape_is_an_error(body: Any) -> None:
    seen: list[httpx.Request] = []
    web = tool(httpx.Response(200, json=body), seen, endpoint="http://engine.test/v1/")
    with pytest.raises(ToolError, match="tool 'web': the search engine gave no answer"):
        await web.call({"query": "x"}, ToolCaller())
    assert str(seen[0].url) == "http://engine.test/v1/chat/completions"
    assert "authorization" not in seen[0].headers


async def test_a_refusal_is_told() -> None:
    web = tool(httpx.Response(401, text="no credit"), [], perplexity_auth_token="k")
    with pytest.raises(ToolError, match="tool 'web': HTTP status 401: no credit"):
        await web.call({"query": "x"}, ToolCaller())
