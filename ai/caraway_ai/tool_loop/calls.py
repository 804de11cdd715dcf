"""Calls of tools as models write them: whole in an answer, or in fragments of a stream."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from caraway_ai.protocols import JsonObject
from caraway_core.json_texts import strict_json


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool; the arguments are text, which may not be JSON."""

    id: str
    name: str
    arguments: str

    @property
    def readable(self) -> "ToolCall":
        """The call with an empty object where its arguments are not a JSON object.

        Some providers refuse a whole conversation with such a call in it. The result of the call
        tells the model what was wrong.
        """
        try:
            is_object = isinstance(strict_json.parse(self.arguments), dict)
        except ValueError:
            is_object = False
        return self if is_object else replace(self, arguments="{}")

    @property
    def message_part(self) -> JsonObject:
        """The call as a message of the assistant has it."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


def of_message(message: JsonObject) -> Sequence[ToolCall]:
    """Return the calls in a message of an assistant; others than of functions are left out."""
    found = []
    for number, call in enumerate(message.get("tool_calls") or ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            name, arguments = function.get("name"), function.get("arguments")
            call_id = str(call.get("id") or f"call_{number}")
            found.append(ToolCall(call_id, str(name or ""), _text(arguments)))
    return found


def _text(arguments: object) -> str:
    if arguments is None:
        return ""
    if isinstance(arguments, str):
        return arguments
    # Some servers send the arguments as an object.
    import json

    return json.dumps(arguments)


@dataclass(slots=True)
class StreamedCalls:
    """Collects the fragments of one answer.

    Fragments of calls that the runtime does not run pass through: they get the numbers of an answer
    in which there are no more.
    """

    runs: Callable[[str], bool]
    """True if the runtime runs the calls of a name."""
    _parts: dict[int, dict[str, str]] = field(default_factory=dict)
    _passing: dict[int, int] = field(default_factory=dict)

    @property
    def has_others(self) -> bool:
        """True if there are calls that the runtime does not run."""
        return bool(self._passing)

    def collect_fragments(self, fragments: Any) -> list[JsonObject]:
        """Collect fragments; return those that pass through."""
        passing = []
        for fragment in fragments or ():
            function = fragment.get("function") or {}
            index = fragment["index"]
            name = function.get("name")
            if index not in self._parts and index not in self._passing:
                is_other = fragment.get("type", "function") != "function"
                if is_other or (name and not self.runs(name)):
                    self._passing[index] = len(self._passing)
                else:
                    self._parts[index] = {"id": "", "name": "", "arguments": ""}
            if index in self._passing:
                passing.append({**fragment, "index": self._passing[index]})
                continue
            part = self._parts[index]
            part["id"] = part["id"] or fragment.get("id") or ""
            part["name"] = part["name"] or name or ""
            part["arguments"] += _text(function.get("arguments"))
        return passing

    @property
    def calls(self) -> Sequence[ToolCall]:
        """The calls that the runtime runs, in their order."""
        return [
            ToolCall(part["id"] or f"call_{index}", part["name"], part["arguments"])
            for index, part in sorted(self._parts.items())
        ]
