"""The address of the MCP endpoint, and the text of its answers."""

from typing import Any

from mcp_types import TextContent

URL = "http://localhost/v1/mcp"


def text(answer: Any) -> str:
    (part,) = answer.content
    assert isinstance(part, TextContent)
    return part.text
