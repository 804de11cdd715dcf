"""Finds the statement in what a model wrote."""

import re

from caraway_core.sqltext import splitting

_FENCED = re.compile(r"```(?:[a-zA-Z]*)[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_BEGINS = re.compile(r"\b(?:SELECT|WITH|EXPLAIN|SHOW|DESCRIBE|VALUES)\b", re.IGNORECASE)
_MOST_CHARACTERS = 64 * 1024


def statement(text: str) -> str:
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
