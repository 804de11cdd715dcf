"""The tools of this runtime, over its data: built-in ones, those of the manifest, MCP servers.

What a tool is, and how models find and call them, is in `caraway_ai.tools`.
"""

from caraway_assist.tools.service import ToolService

__all__ = ["ToolService"]
