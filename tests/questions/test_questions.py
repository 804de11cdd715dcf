"""A real model of half a billion parameters, offline: the share of questions that it answers right.

Prompts were tuned on the first 60 questions. The others show the value of the prompts, compared
with the same model that is given the types of the columns by hand.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from tests.kit.packaged_models import QWEN, fetched
from tests.questions import asked, running, unseen
from tests.questions.asked import QuestionCase
from tests.questions.running import QuestionOutcome

_LEAST_RIGHT = 0.7
Asking = Callable[[Path, asked.Suite, Sequence[QuestionCase], Path], AsyncIterator[QuestionOutcome]]


async def outcomes(
    folder: Path, cases: Sequence[QuestionCase], asking: Asking
) -> list[QuestionOutcome]:
    """Ask questions, one set of tables after the other."""
    model, found = fetched(QWEN), list[QuestionOutcome]()
    for suite in dict.fromkeys(each.suite for each in cases):
        tables = folder / suite
        tables.mkdir(parents=True)
        questions = [each for each in cases if each.suite == suite]
        async for outcome in asking(tables, suite, questions, model):
            found.append(outcome)
    return found


@pytest.mark.full
@pytest.mark.timeout(7200)
async def test_a_small_local_model_answers_most_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = await outcomes(tmp_path, asked.ALL, running.outcomes)
    with capsys.disabled():
        print(f"\n{running.table(found)}")
    right = sum(each.is_right for each in found)
    assert right >= _LEAST_RIGHT * len(found), f"{right} of {len(found)} are right"


@pytest.mark.full
@pytest.mark.timeout(7200)
async def test_questions_that_no_prompt_was_tuned_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = await outcomes(tmp_path / "asked", unseen.ALL, running.outcomes)
    plain = await outcomes(tmp_path / "plain", unseen.ALL, running.plain_outcomes)
    with capsys.disabled():
        print(f"\n{running.table(found)}\nwith a plain prompt:\n{running.table(plain)}")
    right, by_hand = (sum(each.is_right for each in some) for some in (found, plain))
    assert len(found) == len(plain) == 60
    assert right >= by_hand, f"{right} are right, and {by_hand} with a plain prompt"
    assert right >= _LEAST_RIGHT * len(found), f"{right} of {len(found)} are right"
