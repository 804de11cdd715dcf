"""Asks every question of a suite, and compares the rows with the right ones."""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caraway_ai.text_to_sql import generating
from caraway_ai.text_to_sql.prompting import sql_type
from tests.kit.runtime import Running, running
from tests.questions import comparing, data, unseen_data
from tests.questions.asked import QuestionCase, Suite

_DATA: Mapping[Suite, Callable[[Path], str]] = {
    "tpch": data.tpch,
    "quickstart": data.quickstart,
    "clinic": data.clinic,
    "airline": unseen_data.airline,
    "library": unseen_data.library,
    "company": unseen_data.company,
}
_VERSIONED = "application/vnd.caraway.nsql.v1+json"
_TIMEOUT_S = 600
_COLUMNS_SQL = (
    "SELECT table_name, column_name, data_type FROM information_schema.columns "
    "WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
)


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """The answer to a question, and whether it is right."""

    asked: QuestionCase
    is_right: bool
    sql: str
    error: str
    seconds: float


async def outcomes(
    folder: Path, suite: Suite, questions: Sequence[QuestionCase], model: Path
) -> AsyncIterator[QuestionOutcome]:
    """Ask the questions of one suite with a local model."""
    async with running(folder, _manifest(folder, suite, model)) as runtime:
        for asked in questions:
            yield await _outcome(runtime, asked)


async def plain_outcomes(
    folder: Path, suite: Suite, questions: Sequence[QuestionCase], model: Path
) -> AsyncIterator[QuestionOutcome]:
    """Ask the same model with the types of the columns only, once, as a user would by hand."""
    async with running(folder, _manifest(folder, suite, model)) as runtime:
        columns = (await runtime.sql(_COLUMNS_SQL)).json()
        tables: dict[str, list[str]] = {}
        for each in columns:
            column = f"{each['column_name']} {sql_type(each['data_type'])}"
            tables.setdefault(each["table_name"], []).append(column)
        ddl = "\n".join(f"CREATE TABLE {name} ({', '.join(of)});" for name, of in tables.items())
        for asked in questions:
            began = time.monotonic()
            messages = [
                {"role": "system", "content": f"You write SQL for these tables:\n{ddl}"},
                {"role": "user", "content": f"{asked.text}\nAnswer with one SQL query only."},
            ]
            body = {"model": "local", "messages": messages, "temperature": 0, "max_tokens": 300}
            answer = await runtime.api.post("/v1/chat/completions", json=body, timeout=_TIMEOUT_S)
            said = answer.json()["choices"][0]["message"]["content"]
            sql, right = generating.first_statement(said), (await runtime.sql(asked.sql)).json()
            given = await runtime.sql(sql)
            is_right = given.status_code == 200 and comparing.is_same(
                given.json(), right, has_order=asked.has_order
            )
            seconds = time.monotonic() - began
            valid = sql if given.status_code == 200 else ""
            yield QuestionOutcome(asked, is_right, valid, f"{sql} {given.text[:100]}", seconds)


def _manifest(folder: Path, suite: Suite, model: Path) -> str:
    return (
        f"{_DATA[suite](folder)}"
        "models:\n"
        f"  - from: file:{model}\n"
        "    name: local\n"
        "    params: {context_length: 8192, threads: 1}\n"
    )


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
