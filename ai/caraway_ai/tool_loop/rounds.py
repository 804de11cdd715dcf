"""Decides what a loop of tool calls does next, and what it sends; no I/O."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_ai.protocols import ChatRequest, JsonObject
from caraway_ai.tool_loop.calls import ToolCall
from caraway_ai.tools.protocol import ToolDefinition
from caraway_core.errors import ModelInputError

_MOST_CALLS = 32
"""Of one answer."""
_MOST_REPEATS = 2
_NOTHING_CHOSEN = ("auto", "none", "required")


@dataclass(slots=True)
class ToolRounds:
    """The state of one loop: the messages so far, and how often the model called what."""

    request: ChatRequest
    definitions: Sequence[ToolDefinition]
    most_rounds: int
    round_count: int = 0
    usage: JsonObject = field(default_factory=dict)
    _added: list[JsonObject] = field(default_factory=list)
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    _must_answer: bool = False

    def __post_init__(self) -> None:
        if self.own and (self.request.get("n") or 1) > 1:
            raise ModelInputError(
                "'n' must be 1 for a model with tools, because each answer would call its own"
            )

    @property
    def own(self) -> Collection[str]:
        """The names of the tools that the runtime runs."""
        if self.request.get("tool_choice") == "none":
            return ()
        given = self._given_names()
        return frozenset(tool.name for tool in self.definitions) - given

    @property
    def is_last(self) -> bool:
        """Whether the model may call no more tools of the runtime."""
        return self._must_answer or self.round_count >= self.most_rounds

    def next_request(self) -> ChatRequest:
        """Return what to send to the provider."""
        own = self.own
        asked = {**self.request, "messages": [*self.request["messages"], *self._added]}
        if not own:
            return asked
        functions = [_function(tool) for tool in self.definitions if tool.name in own]
        asked["tools"] = [*(self.request.get("tools") or ()), *functions]
        if self.is_last:
            asked["tool_choice"] = "none"
        elif self._added and self._was_chosen():
            # It called what it was told to; to be told so again would never end.
            asked["tool_choice"] = "auto"
        return asked

    def take_calls(self, content: Any, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """Take the calls of one answer; return those to run."""
        self.round_count += 1
        kept = calls[:_MOST_CALLS]
        parts = [call.message_part for call in kept]
        self._added.append({"role": "assistant", "content": content or None, "tool_calls": parts})
        return kept

    def refusal(self, call: ToolCall) -> str | None:
        """Return why a call is not run, or None: the model repeats itself."""
        key = (call.name, call.arguments.strip())
        self._seen[key] += 1
        if self._seen[key] <= _MOST_REPEATS:
            return None
        # It does not learn from that either: no more calls.
        self._must_answer = self._must_answer or self._seen[key] > _MOST_REPEATS + 1
        return (
            "this call was made before with the same arguments, and its result is above; use that "
            "result, call with other arguments, or answer"
        )

    def take_result(self, call: ToolCall, text: str) -> None:
        """Take the result of a call."""
        self._added.append({"role": "tool", "tool_call_id": call.id, "content": text})

    def take_usage(self, usage: Any) -> None:
        """Add what one answer cost."""
        if isinstance(usage, Mapping):
            self.usage = _sum(self.usage, usage)

    def _given_names(self) -> frozenset[str]:
        functions = (tool.get("function") or {} for tool in self.request.get("tools") or ())
        return frozenset(str(function.get("name")) for function in functions)

    def _was_chosen(self) -> bool:
        choice = self.request.get("tool_choice")
        return choice == "required" or (choice is not None and choice not in _NOTHING_CHOSEN)


def _function(tool: ToolDefinition) -> JsonObject:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def _sum(left: Mapping[str, Any], right: Mapping[str, Any]) -> JsonObject:
    total = dict(left)
    for name, value in right.items():
        before = total.get(name)
        if isinstance(value, Mapping):
            total[name] = _sum(before if isinstance(before, Mapping) else {}, value)
        elif type(value) is int and (before is None or type(before) is int):
            total[name] = (before or 0) + value
        else:
            total[name] = value
    return total
