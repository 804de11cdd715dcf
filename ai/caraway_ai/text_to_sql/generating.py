"""Has a model write a statement, tries it, and shows the model what went wrong."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from caraway_ai.protocols import ChatCompletion, ChatRequest, JsonObject
from caraway_ai.text_to_sql import prompting
from caraway_core.errors import (
    DatasetLoadingError,
    ExecutionError,
    InvalidQueryError,
    ModelError,
    ModelInputError,
    QueryError,
    QueryForbiddenError,
)
from caraway_core.sqltext import splitting

MOST_TRIES = 5
_MOST_TOKENS = 1_024
_LONGEST_ERROR = 1_000
_CUT = f"the query was cut off after {_MOST_TOKENS} tokens"
_AGAIN = (InvalidQueryError, QueryForbiddenError, ExecutionError)
"""An error that another statement can avoid."""
Outcome = TypeVar("Outcome")
Ask = Callable[[ChatRequest], Awaitable[ChatCompletion]]
Try = Callable[[str], Awaitable[Outcome]]
_FENCED = re.compile(r"```(?:[a-zA-Z]*)[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_BEGINS = re.compile(r"\b(?:SELECT|WITH|EXPLAIN|SHOW|DESCRIBE|VALUES)\b", re.IGNORECASE)
_MOST_CHARACTERS = 64 * 1024


@dataclass(frozen=True, slots=True)
class WrittenQuery(Generic[Outcome]):
    """A statement that worked, and what came of it."""

    sql: str
    outcome: Outcome
    tries: int


async def generate(
    messages: list[JsonObject],
    ask: Ask,
    attempt: Try[Outcome],
    *,
    most_tries: int = MOST_TRIES,
    more: JsonObject | None = None,
    advise: Callable[[str], str] = lambda _error: "",
) -> WrittenQuery[Outcome]:
    """Return the first statement of a model that works; `more` are further fields of requests.

    `advise` returns a hint for the message of an error, or an empty text.

    Raises:
        ModelError: the model failed, or none of its statements worked.
        QueryError: a statement failed for a reason that is not its own.
    """
    asked, last = list(messages), ""
    settings: JsonObject = {"temperature": 0, "max_tokens": _MOST_TOKENS, **(more or {})}
    error: QueryError | None = None
    is_cut = False
    for number in range(1, most_tries + 1):
        answer = await _asked(ask, {"messages": asked, **settings})
        choice = answer["choices"][0]
        text = _said(choice["message"])
        is_cut = choice["finish_reason"] == "length"
        sql = "" if is_cut else first_statement(text)
        if not sql:
            why = _CUT if is_cut else "there is no query"
            asked = [*messages, *prompting.correction(text or "(nothing)", why)]
            continue
        try:
            return WrittenQuery(sql, await attempt(sql), number)
        except _AGAIN as exc:
            if isinstance(exc, DatasetLoadingError):
                raise
            error = exc
        said, hint = error.message[:_LONGEST_ERROR], advise(error.message)
        if sql == last:
            # The same again, and it would go on so: it must not read that query, and other words
            # may come by chance only.
            settings["temperature"] = min(1.0, settings["temperature"] + 0.4)
            asked = prompting.fresh_try(messages, said, hint)
        else:
            asked = [*messages, *prompting.correction(sql, said, hint)]
        last = sql
    if error is None and is_cut:
        raise ModelError(f"{_CUT}; ask for less, or use another model")
    if error is None:
        raise ModelError("the model wrote no query; ask in other words, or use another model")
    raise ModelError(
        f"no query was produced: the model tried {most_tries} times, and the last query failed: "
        f"{error.message}{'' if error.message.endswith(('.', '?')) else '.'} The query was: {last}"
    ) from error


def _said(message: JsonObject) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    # Models that think send parts.
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


async def _asked(ask: Ask, request: ChatRequest) -> ChatCompletion:
    try:
        return await ask(request)
    except ModelInputError as exc:
        told = exc.message.lower()
        refused = [name for name in ("temperature", "max_tokens") if name in told]
        if not refused:
            raise
        # Models that reason choose these by themselves.
        return await ask({name: each for name, each in request.items() if name not in refused})


def first_statement(text: str) -> str:
    """Return the first statement in a text; empty where there is none.

    What surrounds it is left out: thoughts, a fence, words before it, `--` at its beginning. It is
    not judged here what it does: the engine refuses what may not run.
    """
    text = _THOUGHT.sub("", text[:_MOST_CHARACTERS]).strip()
    fenced = [part.strip() for part in _FENCED.findall(text) if part.strip()]
    candidate = next((part for part in fenced if _BEGINS.search(part)), "") or _FENCED.sub("", text)
    candidate = candidate.strip().strip("`").removeprefix("--").strip()
    if candidate[:4].lower() == "sql:":
        candidate = candidate[4:].strip()
    if not fenced and (begin := _BEGINS.search(candidate)) is not None:
        # Words before it are an explanation; a statement of another kind has none of these.
        before = candidate[: begin.start()].strip()
        if before.endswith(":") or before.endswith(".") or not before:
            candidate = candidate[begin.start() :]
    found = splitting.split(candidate).all()
    return found[0].strip() if found else ""
