"""A real model of half a billion parameters, offline: how many of 60 questions it answers right."""

from pathlib import Path

import pytest

from tests.kit.packaged_models import QWEN, fetched
from tests.questions import asked, running

_LEAST_RIGHT = 0.7


@pytest.mark.full
@pytest.mark.timeout(7200)
async def test_a_small_local_model_answers_most_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = fetched(QWEN)
    found = []
    for suite in dict.fromkeys(each.suite for each in asked.ALL):
        folder = tmp_path / suite
        folder.mkdir()
        questions = [each for each in asked.ALL if each.suite == suite]
        async for outcome in running.outcomes(folder, suite, questions, model):
            found.append(outcome)
    with capsys.disabled():
        print(f"\n{running.table(found)}")
    right = sum(each.is_right for each in found)
    assert right >= _LEAST_RIGHT * len(found), f"{right} of {len(found)} are right"
