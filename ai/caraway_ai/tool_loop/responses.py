"""Runs the runtime's tools in a response of a provider that has the responses API itself."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from caraway_ai.protocols import JsonObject, ResponsesModel
from caraway_ai.tool_loop.rounds import ResponseRounds
from caraway_ai.tool_loop.running import LoopTools

_BEGIN = ("response.created", "response.queued", "response.in_progress")
_END = ("response.completed", "response.incomplete")


class ResponsesLoop:
    """One request. Calls of the runtime's tools are run and left out of what the caller sees."""

    def __init__(self, model: ResponsesModel, tools: LoopTools | None) -> None:
        self._model = model
        self._tools = tools
        self.said: Sequence[JsonObject] = ()
        """After the end: every item since the request, also calls and results left out."""

    async def respond(self, request: JsonObject) -> JsonObject:
        """Return the response, after as many calls of tools as it needs.

        Raises:
            ModelError: as `ResponsesModel.respond`, or the model did not stop to call tools.
        """
        rounds = self._rounds(request)
        shown: list[JsonObject] = []
        while True:
            answer = await self._model.respond(rounds.next_request())
            rounds.take_usage(answer.get("usage"))
            shown += _visible(rounds, answer["output"])
            if not await self._goes_on(rounds, answer):
                return _shown(rounds, answer, shown)

    async def events(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Yield the events of the response; the rounds of tools are one response.

        Raises: as `respond`.
        """
        rounds = self._rounds(request)
        shown: list[JsonObject] = []
        while True:
            last: JsonObject = {}
            numbers = _OutputNumbers(len(shown), rounds)
            async with aclosing(self._model.events(rounds.next_request())) as events:
                async for event in events:
                    if event["type"] in _END:
                        last = event
                    elif event["type"] in _BEGIN:
                        if not rounds.round_count:
                            response = _shown(rounds, event.get("response") or {}, [])
                            yield {**event, "response": response}
                    elif (passed := numbers.passed(event)) is not None:
                        yield passed
            answer = last["response"]
            rounds.take_usage(answer.get("usage"))
            shown += _visible(rounds, answer["output"])
            if not await self._goes_on(rounds, answer):
                yield {**last, "response": _shown(rounds, answer, shown)}
                return

    def _rounds(self, request: JsonObject) -> ResponseRounds:
        if self._tools is None:
            return ResponseRounds(request, (), 0)
        return ResponseRounds(request, self._tools.definitions, self._tools.settings.most_rounds)

    async def _goes_on(self, rounds: ResponseRounds, answer: JsonObject) -> bool:
        """Run the calls of an answer; return whether the model is asked again."""
        output = answer["output"]
        calls = rounds.calls_of(output)
        is_cut = answer["status"] == "incomplete"
        if not calls or self._tools is None or is_cut or _needs_caller(rounds, output):
            self.said = [*rounds.added, *_visible(rounds, output)]
            return False
        rounds.check_end()
        rounds.take_output(output, calls)
        await self._tools.run_calls(rounds, calls)
        return True


class _OutputNumbers:
    """Numbers the items of one round after those of earlier ones, without those left out."""

    def __init__(self, first: int, rounds: ResponseRounds) -> None:
        self._first = first
        self._rounds = rounds
        self._own: set[int] = set()

    def passed(self, event: JsonObject) -> JsonObject | None:
        """Return an event as the caller sees it; None is left out."""
        index = event.get("output_index")
        if type(index) is not int:
            return event
        item = event.get("item")
        if isinstance(item, Mapping) and self._rounds.is_own(item):
            self._own.add(index)
        if index in self._own:
            return None
        number = self._first + index - sum(own < index for own in self._own)
        return {**event, "output_index": number}


def _visible(rounds: ResponseRounds, output: Sequence[JsonObject]) -> list[JsonObject]:
    return [item for item in output if not rounds.is_own(item)]


def _shown(rounds: ResponseRounds, answer: JsonObject, output: list[JsonObject]) -> JsonObject:
    tools = answer.get("tools")
    found = {**answer, "output": output}
    if isinstance(tools, list) and rounds.own:
        own = rounds.own
        found["tools"] = [
            tool for tool in tools if isinstance(tool, Mapping) and tool.get("name") not in own
        ]
    if rounds.usage:
        found["usage"] = rounds.usage
    return found


def _needs_caller(rounds: ResponseRounds, output: Sequence[Mapping[str, object]]) -> bool:
    """True if there is a call that only the caller can answer."""
    done = {
        item.get("call_id") for item in output if str(item.get("type")).endswith("_call_output")
    }
    return any(
        item.get("type") == "mcp_approval_request"
        or (
            str(item.get("type")).endswith("_call")
            and item.get("call_id") is not None
            and item["call_id"] not in done
            and not rounds.is_own(item)
        )
        for item in output
    )
