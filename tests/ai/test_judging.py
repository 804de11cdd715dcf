"""A chat model as a judge: its prompt, and the allowed forms of its answers."""

import json
from collections.abc import Callable

import pytest

from caraway_ai import judging
from caraway_ai.protocols import ChatCompletion, ChatRequest
from caraway_core.errors import ModelAwayError, ModelError, ModelInputError
from tests.kit.scripted_provider import completion


class Judge:
    def __init__(self, say: Callable[[list[str]], str]) -> None:
        self._say = say
        self.requests: list[ChatRequest] = []
        self.fails: list[ModelError] = []

    async def __call__(self, request: ChatRequest) -> ChatCompletion:
        self.requests.append(request)
        if self.fails:
            raise self.fails.pop(0)
        return completion(self._say(json.loads(request["messages"][1]["content"])["texts"]))


def lengths(texts: list[str]) -> str:
    return json.dumps([len(text) for text in texts])


async def test_many_texts_are_judged_in_batches() -> None:
    judge = Judge(lengths)
    texts = ["x" * size for size in range(45)]
    assert await judging.scores("q", texts, judge) == [size / 100 for size in range(45)]
    assert len(judge.requests) == 3
    assert await judging.scores("q", ["x" * 9_999], judge) == [1.0]
    assert await judging.scores("q", [], judge) == []


@pytest.mark.parametrize(
    "said", ["```json\n[10, 20]\n```", "Scores for [1]: [10,20]", "[10.0, 2e1]", "[-5] [10, 20]"]
)
async def test_an_array_among_words(said: str) -> None:
    assert await judging.scores("q", ["a", "b"], Judge(lambda _: said)) == [0.1, 0.2]


@pytest.mark.parametrize(
    "said", ["", "none", "[1]", "[1, 2, 3]", "[1, NaN]", '[1, "x"]', "[1, null]", "[[1, 2]", "{}"]
)
async def test_an_answer_without_scores_is_asked_for_again(said: str) -> None:
    answers = [said, "[1, 2]"]
    judge = Judge(lambda _: answers.pop(0))
    if said != "[[1, 2]":
        assert await judging.scores("q", ["a", "b"], judge) == [0.01, 0.02]
        assert len(judge.requests) == 2
    with pytest.raises(ModelError, match="without a score for each text"):
        await judging.scores("q", ["a", "b", "c", "d"], Judge(lambda _: said))


async def test_numbers_out_of_bounds_are_bounded() -> None:
    assert await judging.scores("q", ["a", "b"], Judge(lambda _: "[-7, 1e9]")) == [0.0, 1.0]


async def test_failures_of_the_model() -> None:
    judge = Judge(lengths)
    judge.fails = [ModelInputError("temperature is not supported")]
    assert await judging.scores("q", ["a"], judge) == [0.01]
    assert "temperature" not in judge.requests[-1]
    judge.fails = [ModelAwayError("it is overloaded", retry_after_s=9)]
    with pytest.raises(ModelAwayError, match="overloaded"):
        await judging.scores("q", ["a"] * 60, judge)
