"""Asks every question of a suite, and compares the rows with the right ones."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit.runtime import Running, running
from tests.questions import comparing, data
from tests.questions.asked import QuestionCase, Suite

_DATA: Mapping[Suite, Callable[[Path], str]] = {
    "tpch": data.tpch,
    "quickstart": data.quickstart,
    "clinic": data.clinic,
}
_VERSIONED = "application/vnd.caraway.nsql.v1+json"
_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """What came of a question."""

    asked: QuestionCase
    is_right: bool
    sql: str
    error: str
    seconds: float


async def outcomes(
    folder: Path, suite: Suite, questions: Sequence[QuestionCase], model: Path
) -> AsyncIterator[QuestionOutcome]:
    """Ask the questions of one suite with a local model."""
    manifest = (
        f"{_DATA[suite](folder)}"
        "models:\n"
        f"  - from: file:{model}\n"
        "    name: local\n"
        "    params: {context_length: 8192, threads: 1}\n"
    )
    async with running(folder, manifest) as runtime:
        for asked in questions:
            yield await _outcome(runtime, asked)


async def _outcome(runtime: Running, asked: QuestionCase) -> QuestionOutcome:
    began = time.monotonic()
    body = {"query": asked.text, "sample_data_enabled": True}
    answer = await runtime.api.post(
        "/v1/nsql", json=body, headers={"accept": _VERSIONED}, timeout=_TIMEOUT_S
    )
    seconds = time.monotonic() - began
    if answer.status_code != 200:
        return QuestionOutcome(asked, False, "", answer.text[:300], seconds)
    given: Any = answer.json()
    right = (await runtime.sql(asked.sql)).json()
    is_right = comparing.is_same(given["data"], right, has_order=asked.has_order)
    return QuestionOutcome(asked, is_right, given["sql"], "", seconds)


def table(found: Sequence[QuestionOutcome]) -> str:
    """Return all outcomes as a table, with the sums of each suite."""
    lines = []
    for each in found:
        mark = "right" if each.is_right else "WRONG" if each.sql else "ERROR"
        told = " ".join((each.sql or each.error).split())[:160]
        lines.append(
            f"{mark} {each.asked.suite:10} {each.seconds:6.1f}s {each.asked.text} | {told}"
        )
    for suite in dict.fromkeys(each.asked.suite for each in found):
        of = [each for each in found if each.asked.suite == suite]
        valid = sum(bool(each.sql) for each in of)
        right = sum(each.is_right for each in of)
        lines.append(f"{suite}: {right} right and {valid} valid of {len(of)}")
    return "\n".join(lines)
