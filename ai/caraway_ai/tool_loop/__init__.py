"""Lets a model call tools until it has an answer."""

from caraway_ai.tool_loop.model import LoopSettings, ModelWithTools

__all__ = ["LoopSettings", "ModelWithTools"]
