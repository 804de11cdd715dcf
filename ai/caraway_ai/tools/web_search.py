"""A tool that searches the web by a search engine that answers as a chat model does."""

from collections.abc import Mapping
from typing import Any

import httpx

from caraway_ai.tools.headers import authorization
from caraway_ai.tools.http_tool import HttpService, HttpTool
from caraway_ai.tools.protocol import Arguments, JsonSchema, ToolCaller
from caraway_core.errors import ToolError
from caraway_core.manifest.texts.units import seconds
from caraway_core.manifest.values.declared_tools import DeclaredTool

_ENDPOINT = "https://api.perplexity.ai"
_MODEL = "sonar"
_TIMEOUT_S = 60.0
_MOST_SOURCES = 20
_PARAMETERS: JsonSchema = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 2_000,
            "description": "What to look for on the web.",
        }
    },
    "required": ["query"],
    "additionalProperties": False,
}


class WebSearchTool:
    """Returns what the engine found, and its sources."""

    def __init__(
        self,
        declared: DeclaredTool,
        params: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Take the params with secrets filled in."""
        self.name = declared.name
        self.description = declared.description or "Searches the web, and tells what is found."
        self.parameters = _PARAMETERS
        self._model = params.get("model", _MODEL)
        address = params.get("endpoint", _ENDPOINT).rstrip("/")
        headers = {"accept": "application/json"}
        if token := params.get("perplexity_auth_token"):
            headers["authorization"] = authorization(declared.name, "perplexity_auth_token", token)
        timeout_s = seconds(params["timeout"]) if "timeout" in params else _TIMEOUT_S
        service = HttpService(f"{address}/chat/completions", "POST", headers, timeout_s)
        self._engine = HttpTool(declared, service, transport)

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        """Return the answer of the engine as text, and the pages that it comes from.

        Raises:
            ToolError: the engine refuses, cannot be reached, or answers something else.
            DeadlineError: it does not answer in time.
        """
        messages = [{"role": "user", "content": arguments["query"]}]
        asked = {"model": self._model, "messages": messages}
        answer = await self._engine.call(asked, caller)
        try:
            text = answer["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise ToolError(f"tool '{self.name}': the search engine gave no answer; try again")
        return {"answer": text, "sources": _sources(answer)}


def _sources(answer: Mapping[str, object]) -> list[dict[str, str]]:
    listed = answer.get("search_results") or answer.get("citations")
    found = []
    for each in listed if isinstance(listed, list) else ():
        page = {"url": each} if isinstance(each, str) else each
        if isinstance(page, dict) and isinstance(page.get("url"), str):
            names = ("url", "title", "date")
            found.append({name: page[name] for name in names if isinstance(page.get(name), str)})
    return found[:_MOST_SOURCES]
