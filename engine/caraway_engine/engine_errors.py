"""The table of the engine's errors: what each means, in words of our own.

The engine's Python errors carry only text. It begins with the kinds of the errors that were wrapped
into each other, such as `Arrow error: Cast error: `; they decide whose fault it is. What follows is
worded by the first rule that matches, without the engine's types and without folders of the server.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from caraway_engine import type_words


class Fault(Enum):
    """Whose fault an error is."""

    STATEMENT = "statement"
    SOURCE = "source"
    ENGINE = "engine"


_STATEMENT_KINDS = (
    "Error during planning", "Execution error", "Schema error", "SQL error", "Cast error",
    "Compute error", "Parser error", "Invalid argument error", "Arithmetic overflow",
    "This feature is not implemented", "Not yet implemented", "Divide by zero error",
    "Invalid or Unsupported Configuration", "C Data interface error",
)  # fmt: skip
_SOURCE_KINDS = (
    "Object Store error", "Parquet error", "Parquet argument error", "Avro error", "AvroError",
    "IO error", "Io error", "Csv error", "Json error", "Ipc error", "Error while parsing value",
)  # fmt: skip
_ENGINE_KINDS = (
    "Internal error", "ExecutionJoin error", "Substrait error", "FFI error", "Memory error",
)  # fmt: skip
_WRAPPERS = ("DataFusion error", "External error", "External", "Arrow error")
_KIND = re.compile(
    r"\s*(?:(?P<kind>"
    + "|".join(map(re.escape, (*_STATEMENT_KINDS, *_SOURCE_KINDS, *_ENGINE_KINDS, *_WRAPPERS)))
    + r"|Generic \w+ error|type_coercion(?=\s*caused by)|Optimizer rule '[^']*' failed)"
    + r"(?:\(\w+\))?(?::|\s*caused by|(?=$)|(?= ))\s*)"
)
_CAUSED_BY = re.compile(r"[^\n]*\ncaused by\n")


@dataclass(frozen=True, slots=True)
class Told:
    """An error of the engine, as a user is told of it."""

    fault: Fault
    message: str


def read(text: str) -> Told:
    """Say whose fault an error is, and word it."""
    kinds, rest = _kinds(text)
    for rule in RULES:
        if match := rule.pattern.search(rest):
            return Told(Fault.STATEMENT, rule.words(match))
    return Told(_fault(kinds), plain(rest))


def plain(text: str) -> str:
    """Take out of a text what is of the engine or of the server alone."""
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


def _fault(kinds: list[str]) -> Fault:
    """Let the innermost kind decide, except that a source was read where one of its kinds is."""
    if any(kind in _SOURCE_KINDS or kind.startswith("Generic ") for kind in kinds):
        return Fault.SOURCE
    if any(kind in _ENGINE_KINDS for kind in kinds):
        return Fault.ENGINE
    return Fault.STATEMENT if any(kind in _STATEMENT_KINDS for kind in kinds) else Fault.ENGINE


_NOISE = re.compile(
    r"(?:Error during planning|Execution error|Internal error|External error|Arrow error"
    r"|DataFusion error|Schema error|SQL error|Compute error|Cast error|Parser error"
    r"|Invalid argument error|This feature is not implemented): |\bcaused by\s"
)
# A value of the engine's language, such as `Ident { value: "x", ...`: it goes on to the end.
_DUMP = re.compile(r":? ?\b[A-Z]\w+ ?\{ ?\w+:.*|:? ?\b[A-Z]\w+\(\w+ \{.*", re.DOTALL)
_URLS = re.compile(r"\b(?:https?|s3a?|gs|abfss?|az|memory)://[^\s'\",)]+")
_FOLDERS = re.compile(r"(?:file://)?(?<![\w.])/?(?:[\w.@%+=~-]+/){2,}(?P<name>[\w.@%+=~-]*)")


@dataclass(frozen=True, slots=True)
class Rule:
    """A message of the engine, and what is said in its place."""

    pattern: re.Pattern[str]
    words: Callable[[re.Match[str]], str]


def _rule(pattern: str, words: str) -> Rule:
    """Word a match by a template of its groups, whose types become those of SQL."""

    def worded(match: re.Match[str]) -> str:
        found = {name: plain(value or "") for name, value in match.groupdict().items()}
        return words.format(**found)

    return Rule(re.compile(pattern, re.DOTALL), worded)


_NO_CONDITION = (
    "IN, EXISTS, ANY and ALL with a subquery are supported in WHERE, HAVING and ON only; elsewhere "
    "count what they look for, as in (SELECT count(*) FROM u WHERE u.k = t.k) > 0"
)
_CALLED = "function {call} cannot be called so: check the number and the types of its arguments"
RULES: tuple[Rule, ...] = (
    _rule(r"^Divide by zero", "division by zero"),
    _rule(
        r"No function matches the given name and argument types '(?P<call>.+?)'\. You might",
        _CALLED,
    ),
    _rule(r"Function '(?P<call>\w+)' failed to match any signature", _CALLED),
    _rule(r"satisfy a call to '(?P<call>\w+)' function", _CALLED),
    _rule(
        r"unique expression names but the expression \"(?P<one>.+?)\" at position \d+ and "
        r"\".+?\" at position",
        "two columns of a SELECT have the same name ({one}); give one of them another name with AS",
    ),
    _rule(
        r"duplicate (?:un)?qualified field name (?P<name>[^\n]+?)\.?$",
        "the column {name} is there twice; give one of the two another name with AS; where "
        "GROUP BY casts it twice, cast it in a subquery",
    ),
    _rule(
        r"Ambiguous reference to unqualified field (?P<name>\S+)",
        "column {name} is in several tables; write which one, as in t.{name}",
    ),
    _rule(
        r"Cannot cast (?:string|value) '(?P<value>.*?)' to value of (?P<type>.+?) type",
        "the text '{value}' is no {type}",
    ),
    _rule(
        r"(?:Unsupported CAST from|Cast error: Casting from) (?P<one>.+?) to (?P<other>[^\n]+)",
        "{one} cannot be cast to {other}",
    ),
    _rule(
        r"Cannot coerce arithmetic expression (?P<what>.+?) to valid types",
        "{what} cannot be computed; cast one of the two",
    ),
    _rule(
        r"Cannot infer common (?:argument |string )?type for [\w ]*?operation (?P<what>[^\n]+)",
        "{what}: the two types do not fit together; cast one of them",
    ),
    _rule(
        r"common type to coerce (?P<one>.+?) and (?P<other>.+?) in LIKE",
        "LIKE does not take {one} and {other}; cast one of them",
    ),
    _rule(r"regex parse error:.*?error: (?P<why>[^\n]+)", "wrong regular expression: {why}"),
    _rule(r"currently only supports a single SQL statement", "send one statement at a time"),
    _rule(r"No SQL statements were provided", "the statement is empty"),
    _rule(
        r"Physical plan does not support logical expression (?:InSubquery|Exists|SetComparison)"
        r"|In/Exist/SetComparison subquery can only be used in",
        _NO_CONDITION,
    ),
    _rule(
        r"Physical plan does not support logical expression (?P<what>[A-Z]\w+)",
        "{what} is not supported at this place of a statement",
    ),
    _rule(
        r"Unsupported ast node in sqltorel: (?P<what>\w+)",
        "{what} is not supported in SQL at this place",
    ),
    _rule(
        r"array_resize: failed to convert size", "array_resize needs a size that is not negative"
    ),
    _rule(r"Null byte at position \d+", "a name or a text holds the character NUL; leave it out"),
    _rule(
        r"Error parsing timestamp from '(?P<value>.*?)'", "the text '{value}' is no TIMESTAMP"
    ),
    _rule(r"Invalid function '(?P<name>[^']+)'\.\s*Did you mean '(?P<near>[^']+)'\?",
          "function '{name}' not found; did you mean '{near}'?"),
    _rule(r"Unable to cast to (?P<type>Date\d+)", "a text is no DATE"),
    _rule(r"^Format error", "the format is wrong"),
    _rule(r"Unsupported Value '\w+\(", "this kind of literal is not supported"),
    _rule(
        r"expr type (?P<one>.+?) can't cast to (?P<other>.+?) in SetComparison",
        "ANY and ALL do not take {one} and {other}; cast one of them",
    ),
    _rule(
        r"(?P<value>-?[\d.]+) is too large to store in a Decimal\d+ of precision (?P<digits>\d+)",
        "{value} has more digits than DECIMAL({digits}, ...) holds",
    ),
)  # fmt: skip
