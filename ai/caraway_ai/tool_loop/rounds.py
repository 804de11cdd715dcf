"""Decides the next step of a loop of tool calls, without I/O."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from caraway_ai.protocols import ChatRequest, JsonObject
from caraway_ai.tool_loop.calls import ToolCall
from caraway_ai.tools.protocol import ToolDefinition
from caraway_core.errors import ModelError, ModelInputError

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
        return frozenset(tool.name for tool in self.definitions) - self._given_names()

    def runs(self, name: str) -> bool:
        """True if the runtime runs calls of a name: all but those of the request's own tools.

        An unknown name is run, too, and fails: the caller could not answer it, and the
        model can do better.
        """
        return bool(self.own) and name not in self._given_names()

    @property
    def is_last(self) -> bool:
        """True if the model may call no more tools of the runtime."""
        return self._must_answer or self.round_count >= self.most_rounds

    def check_end(self) -> None:
        """Check that the model may call tools once more.

        Raises:
            ModelError: it was forced to answer, and calls again.
        """
        if self.is_last:
            raise ModelError(
                f"the model called tools {self.round_count} times in a row and was told to "
                "answer, but called again; ask for less, or raise its tool_recursion_limit"
            )

    def next_request(self) -> ChatRequest:
        """Return what to send to the provider."""
        own = self.own
        asked = {**self.request, **self._conversation()}
        if not own:
            return asked
        functions = [self._function(tool) for tool in self.definitions if tool.name in own]
        asked["tools"] = [*(self.request.get("tools") or ()), *functions]
        if self.is_last:
            asked["tool_choice"] = "none"
        elif self._added and self._was_chosen():
            # It made the forced call; forcing it again would never end.
            asked["tool_choice"] = "auto"
        return asked

    def take_calls(self, content: object, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """Take the calls of one answer; return those to run."""
        self.round_count += 1
        kept = calls[:_MOST_CALLS]
        parts = [call.readable.message_part for call in kept]
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

    @property
    def added(self) -> Sequence[JsonObject]:
        """Return the calls and results that the loop has added to the conversation."""
        return self._added

    def take_usage(self, usage: object) -> None:
        """Add the usage of one answer."""
        if isinstance(usage, Mapping):
            self.usage = _sum(self.usage, usage)

    def _conversation(self) -> JsonObject:
        return {"messages": [*self.request["messages"], *self._added]}

    def _function(self, tool: ToolDefinition) -> JsonObject:
        return {"type": "function", "function": _described(tool)}

    def _given_names(self) -> frozenset[str]:
        tools = [tool.get(tool.get("type", "function")) for tool in self.request.get("tools") or ()]
        given = [*tools, *(self.request.get("functions") or ())]
        return frozenset(str(each.get("name")) for each in given if isinstance(each, Mapping))

    def _was_chosen(self) -> bool:
        choice = self.request.get("tool_choice")
        return choice == "required" or (choice is not None and choice not in _NOTHING_CHOSEN)


def _described(tool: ToolDefinition) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def _sum(left: Mapping[str, object], right: Mapping[str, object]) -> JsonObject:
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


class ResponseRounds(ToolRounds):
    """The state of a loop over the responses API, whose conversation is a list of items."""

    def take_output(self, output: Sequence[JsonObject], calls: Sequence[ToolCall]) -> None:
        """Take the items of one answer, of which `calls` are run."""
        self.round_count += 1
        run = {call.id for call in calls}
        self._added += [
            item
            for item in output
            if item.get("type") != "function_call" or item.get("call_id") in run
        ]

    def calls_of(self, output: Sequence[JsonObject]) -> Sequence[ToolCall]:
        """Return the calls of the runtime's tools, no more than are run at once."""
        calls = [
            ToolCall(str(item.get("call_id")), str(item["name"]), str(item.get("arguments") or ""))
            for item in output
            if self.is_own(item)
        ]
        return calls[:_MOST_CALLS]

    def is_own(self, item: Mapping[str, object]) -> bool:
        """True if an item is a call of a tool that the runtime runs."""
        name = item.get("name")
        return item.get("type") == "function_call" and isinstance(name, str) and self.runs(name)

    def take_result(self, call: ToolCall, text: str) -> None:
        """Take the result of a call."""
        self._added.append({"type": "function_call_output", "call_id": call.id, "output": text})

    def _conversation(self) -> JsonObject:
        given = self.request["input"]
        if isinstance(given, str):
            given = [{"type": "message", "role": "user", "content": given}]
        return {"input": [*given, *self._added]}

    def _function(self, tool: ToolDefinition) -> JsonObject:
        # Without this the provider makes every parameter required.
        return {"type": "function", **_described(tool), "strict": False}

    def _given_names(self) -> frozenset[str]:
        return frozenset(str(tool.get("name")) for tool in self.request.get("tools") or ())
