"""Maps the text of an engine error to its fault and to a message for users.

The text begins with the kinds of the nested errors, such as `Arrow error: Cast error: `. They
decide whose fault the error is. The first matching row of `engine_messages` gives the message for
the rest. Types of the engine and folders of the server are removed.
"""

import re
from dataclasses import dataclass
from enum import Enum

from caraway_engine.errors import engine_messages as messages
from caraway_engine.errors import type_words


class FaultOwner(Enum):
    """The party that caused an error."""

    STATEMENT = "statement"
    SOURCE = "source"
    ENGINE = "engine"


_HALF = 5_000
"""Characters of a long text that are read from its start and from its end."""
_KINDS = (
    *messages.STATEMENT_KINDS,
    *messages.SOURCE_KINDS,
    *messages.ENGINE_KINDS,
    *messages.WRAPPERS,
)
_KIND = re.compile(
    rf"\s*(?:(?P<kind>{'|'.join(map(re.escape, _KINDS))})"
    rf"|{messages.STORE_KIND}|{'|'.join(messages.STEPS)})"
    rf"(?:\(\w+\))?(?::|\s*{messages.CAUSED_BY}|(?=$)|(?= ))\s*"
)


@dataclass(frozen=True, slots=True)
class ReportedFailure:
    """An engine error as reported to users."""

    fault: FaultOwner
    message: str


def read(text: str) -> ReportedFailure:
    """Determine whose fault an error is, and return its message for users.

    The middle of a long text is left out: it is a value of the statement.
    """
    if len(text) > 2 * _HALF:
        text = f"{text[:_HALF]}...{text[-_HALF:]}"
    kinds, rest = _kinds(text)
    for message in messages.WORDED:
        if match := message.find(rest):
            return ReportedFailure(FaultOwner.STATEMENT, _worded(message, match))
    return ReportedFailure(_fault(kinds), plain(rest))


def kind_of(exc: Exception) -> str:
    """Return the type of an exception with the kinds of the engine that its text begins with."""
    kinds, _ = _kinds(str(exc)[:_HALF])
    return ": ".join((type(exc).__name__, *kinds))


def _worded(message: messages.EngineMessage, match: re.Match[str]) -> str:
    found = {name: plain(value or "") for name, value in match.groupdict().items()}
    return message.words.format(**found)


def plain(text: str) -> str:
    """Remove engine internals and server paths from a text."""
    text = _NOISE.sub("", _DUMP.sub("", text))
    return type_words.translated(
        _FOLDERS.sub(r"\g<name>", _URLS.sub("a remote file", text))
    ).strip()


def _kinds(text: str) -> tuple[list[str], str]:
    kinds: list[str] = []
    while match := _KIND.match(text):
        kinds.append(match["kind"] or match[0].strip())
        if kinds[-1] == "Divide by zero error":
            break
        text = text[match.end() :]
    return kinds, text


def _fault(kinds: list[str]) -> FaultOwner:
    """Return the fault: a source if any kind is one of its, else the innermost known kind."""
    if any(kind in messages.SOURCE_KINDS or kind.startswith("Generic ") for kind in kinds):
        return FaultOwner.SOURCE
    if any(kind in messages.ENGINE_KINDS for kind in kinds):
        return FaultOwner.ENGINE
    return (
        FaultOwner.STATEMENT
        if any(kind in messages.STATEMENT_KINDS for kind in kinds)
        else FaultOwner.ENGINE
    )


_SAID_KINDS = (
    "Error during planning", "Execution error", "Internal error", "External error", "Arrow error",
    "DataFusion error", "Schema error", "SQL error", "Compute error", "Cast error", "Parser error",
    "Invalid argument error", "This feature is not implemented",
)  # fmt: skip
_NOISE = re.compile(rf"(?:{'|'.join(_SAID_KINDS)}): |\b{messages.CAUSED_BY}\s")
# A debug dump of a value, such as `Ident { value: "x", ...`; it extends to the end.
_DUMP = re.compile(r":? ?\b[A-Z]\w+ ?\{ ?\w+:.*|:? ?\b[A-Z]\w+\(\w+ \{.*", re.DOTALL)
_URLS = re.compile(r"\b(?:https?|s3a?|gs|abfss?|az|memory)://[^\s'\",)]+")
# It begins where a run of such characters does: long runs of them would take hours otherwise.
_FOLDERS = re.compile(r"(?:file://)?(?<![\w.@%+=~-])/?(?:[\w.@%+=~-]+/){2,}(?P<name>[\w.@%+=~-]*)")
