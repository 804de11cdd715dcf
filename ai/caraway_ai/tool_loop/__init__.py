"""Lets a model call tools until it has an answer."""

from caraway_ai.tool_loop.model import ModelWithTools
from caraway_ai.tool_loop.responses import ResponsesLoop
from caraway_ai.tool_loop.running import LoopSettings, LoopTools

__all__ = ["LoopSettings", "LoopTools", "ModelWithTools", "ResponsesLoop"]
