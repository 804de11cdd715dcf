"""An MCP server of a third party, as a process on its standard streams."""

import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server: MCPServer = MCPServer("upstream", log_level="CRITICAL")


@server.tool(description="Add two numbers")
def add(a: int, b: int) -> int:
    return a + b


@server.tool(description="Echo a text")
def echo(text: str) -> str:
    return text


@server.tool(name="strange name!", description="Has a name that models may not use")
def strange() -> str:
    return os.environ.get("GREETING", "none")


@server.tool(description="Always fails")
def fails() -> str:
    raise ToolError(f"out of stock for {os.environ.get('TOKEN')}")


@server.tool(description="Ends the server")
def dies() -> str:
    sys.stdout.flush()
    os._exit(1)


if __name__ == "__main__":
    server.run("stdio")
