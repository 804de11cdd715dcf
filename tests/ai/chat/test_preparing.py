"""Settings of the manifest fill only the fields that a caller left out."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.chat.preparing import prepared
from caraway_ai.responses import preparing as responses

NAMES = st.sampled_from(["temperature", "max_tokens", "max_completion_tokens", "seed", "top_p"])
FIELDS = st.dictionaries(NAMES, st.none() | st.integers(0, 3))
DEFAULTS = st.dictionaries(NAMES, st.integers(4, 9))
MESSAGES = [{"role": "user", "content": "x"}]


@given(FIELDS, DEFAULTS, st.sampled_from([None, "", "be nice"]))
def test_the_caller_comes_first(
    given_: dict[str, int | None], defaults: dict[str, int], prompt: str | None
) -> None:
    request = {"messages": MESSAGES, **given_}
    before = copy.deepcopy(request)
    full = prepared(request, defaults, prompt)
    assert request == before
    said = {name: value for name, value in given_.items() if value is not None}
    lengths = {"max_tokens", "max_completion_tokens"}
    for name in {*said, *defaults}:
        if name in said:
            assert full[name] == said[name]
        elif name in lengths and lengths & said.keys():
            # A second length would contradict the caller's.
            assert name not in full
        else:
            assert full[name] == defaults[name]
    assert None not in full.values()
    told = [{"role": "system", "content": prompt}] if prompt else []
    assert full["messages"] == [*told, *MESSAGES]


def test_a_response_gets_the_defaults_that_its_api_has() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    choice = {"type": "function", "function": {"name": "f"}}
    defaults = {
        "temperature": 0.5, "max_tokens": 7, "tool_choice": choice, "reasoning_effort": "low",
        "verbosity": "high", "response_format": schema, "seed": 5, "stop": ["x"],
    }  # fmt: skip
    full = responses.prepared({"model": "m", "input": "hi", "text": None}, defaults, "be nice")
    assert full == {
        "model": "m", "temperature": 0.5, "max_output_tokens": 7,
        "tool_choice": {"type": "function", "name": "f"}, "reasoning": {"effort": "low"},
        "text": {"verbosity": "high",
                 "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
        "input": [{"role": "system", "content": "be nice"}, {"role": "user", "content": "hi"}],
    }  # fmt: skip


def test_the_caller_of_a_response_comes_first() -> None:
    request = {
        "model": "m", "input": [{"role": "user", "content": "hi"}], "temperature": 0,
        "max_output_tokens": 3, "tool_choice": "none", "reasoning": {"effort": "high", "x": 1},
        "text": {"format": {"type": "text"}},
    }  # fmt: skip
    before = copy.deepcopy(request)
    defaults = {
        "temperature": 1, "max_completion_tokens": 9, "tool_choice": "required",
        "reasoning_effort": "low", "verbosity": "low",
        "response_format": {"type": "json_object"},
    }  # fmt: skip
    full = responses.prepared(request, defaults, None)
    assert request == before
    assert full == {**request, "text": {"format": {"type": "text"}, "verbosity": "low"}}
