"""The engine messages that our code recognises.

The engine's Python errors carry only text. All code that depends on their meaning uses this table.
A test provokes each row with the real engine, so that a new engine version fails loudly.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineMessage:
    """A pattern of an engine message, and the message for users, if there is one.

    `words` is a template with the groups of the pattern.
    """

    pattern: re.Pattern[str]
    words: str = ""

    def find(self, said: BaseException | str) -> re.Match[str] | None:
        """Search an error or a text for this message."""
        return self.pattern.search(str(said))


def _says(pattern: str, words: str = "") -> EngineMessage:
    return EngineMessage(re.compile(pattern, re.DOTALL), words)


def find(messages: Sequence[EngineMessage], said: BaseException | str) -> re.Match[str] | None:
    """Return the match of the first message that is found."""
    return next((match for each in messages if (match := each.find(said))), None)


# Kinds of errors: prefixes of the text, which may be nested.
STATEMENT_KINDS = (
    "Error during planning", "Execution error", "Schema error", "SQL error", "Cast error",
    "Compute error", "Parser error", "Invalid argument error", "Arithmetic overflow",
    "This feature is not implemented", "Not yet implemented", "Divide by zero error",
    "Invalid or Unsupported Configuration", "C Data interface error",
)  # fmt: skip
SOURCE_KINDS = (
    "Object Store error", "Parquet error", "Parquet argument error", "Avro error", "AvroError",
    "IO error", "Io error", "Csv error", "Json error", "Ipc error", "Error while parsing value",
)  # fmt: skip
ENGINE_KINDS = (
    "Internal error", "ExecutionJoin error", "Substrait error", "FFI error", "Memory error",
)  # fmt: skip
WRAPPERS = ("DataFusion error", "External error", "External", "Arrow error")
STORE_KIND = r"Generic \w+ error"
STEPS = (r"type_coercion(?=\s*caused by)",)
CAUSED_BY = r"caused by"

# Parts of a text that users do not need.
BACKTRACE = _says(r"\n\nbacktrace:.*")
BUG_HINT = _says(r"\.?\s*This (?:issue was|was) likely caused by a bug in DataFusion.*")

# Messages whose text for users depends on the tables, the settings or the caller.
MISSING_TABLE = _says(r"table '(?P<name>.+?)' not found")
MISSING_FIELD = _says(
    r"No field named (?P<name>.+?)\.(?: Did you mean '(?P<near>[^']+)'\?)?\s*"
    r"(?P<case>Column names are case sensitive\.[^\n]*)?\s*"
    r"(?:Valid fields are (?P<valid>.*?)\.?)?\s*$"
)
REFUSED = (
    _says(r"(?P<kind>DDL) not supported: (?P<what>.*)"),
    _says(r"(?P<kind>DML) not supported: (?P<what>.*)"),
    _says(r"(?P<kind>Statement) not supported: (?P<what>.*)"),
)
SYNTAX = (
    _says(r'ParserError\("?(?P<why>.*?)"?\)$'),
    _says(r'TokenizerError\("?(?P<why>.*?)"?\)$'),
)
TOO_DEEP = _says("RecursionLimitExceeded")
NO_VALUE = _says("was not provided a value")
ROW_OF_EXPRESSIONS = _says("Only identifiers and literals are supported in tuples")
ONLY_LITERALS = (
    _says(r"Arguments must be literals"),
    _says(r"must be an INTEGER(?:, TIMESTAMP, DATE)? or NULL"),
    _says(r"constant string"),
    _says(r"Expected string literal or number"),
    _says(r"Field name must be a non-empty string"),
    _says(r"frame offsets for ROWS / GROUPS must be"),
)
SAME_NAMES = _says(
    r"unique expression names but the expression \"(?P<one>.+?)\" at position \d+ and "
    r"\".+?\" at position",
    "two columns of a SELECT have the same name ({one}); rename one of them with AS",
)
DUPLICATED = _says(
    r"duplicate (?:un)?qualified field name (?P<name>[^\n]+?)\.?$",
    "the column {name} is duplicated; rename one of the two with AS; if it is computed twice, "
    "compute one of the two in a subquery",
)
AMBIGUOUS = _says(
    r"Ambiguous reference to unqualified field (?P<name>\S+)",
    "column {name} is ambiguous; qualify it with its table, as in t.{name}",
)

# Numbers that are too large. Some casts are our own guards, which users never see.
OVERFLOW = "number overflow"
"""The mark in the text that a guard of `known_faults.sums` makes the engine cast."""
TOO_LARGE = (
    _says(r"Cast error: value of (?P<value>-?\d+) is out of range (?P<type>U?Int\d+)"),
    _says(r"Cast error: Can't cast value (?P<value>-?[\d.e+]+) to type (?P<type>U?Int\d+)"),
)
SUM_TOO_LARGE = _says(
    r"Cast error: Cannot cast string '" + OVERFLOW + r" in (?P<what>[A-Za-z ]+?) -?[\d.]*'"
)

# Exhausted memory and full disks.
EXHAUSTED = _says("Resources exhausted")
ASKED_FOR = _says(r"allocate additional (?P<size>[\d.]+ [KMGT]?B)")
JOIN_INPUT = _says("JoinInput")
DISK_FULL = (
    _says("No space left on device"),
    _says("Disk quota exceeded"),
    _says("File too large"),
    _says("during the spilling process has exceeded"),
)
CONSTANT_FILTER = _says("BooleanScalar")
"""A constant was pushed into the scan of a pyarrow dataset, which does not support it."""
GONE = (_says("(?i)not found"), _says("(?i)No such file"))

_NO_CONDITION = (
    "IN, EXISTS, ANY and ALL with a subquery are supported in WHERE, HAVING and ON only; elsewhere "
    "count the matching rows, as in (SELECT count(*) FROM u WHERE u.k = t.k) > 0"
)
_CORRELATED = (
    "a subquery that stands for one value may be compared with the rows around it by = and AND "
    "only, in the SELECT list, WHERE and HAVING; write a JOIN with GROUP BY for other comparisons"
)
_CAST = "{one} cannot be cast to {other}"
_LARGE_REGEX = "the regular expression is too large; shorten it or use fewer repetitions"
_CALLED = "function {call} does not accept these arguments; check their number and types"
WORDED: tuple[EngineMessage, ...] = (
    _says(r"^Divide by zero", "division by zero"),
    _says(
        "does not satisfy order requirements",
        "the engine cannot sort by an expression that compares computed numbers; compute it as a "
        "column of a subquery, and sort by that column",
    ),
    _says(
        r"No function matches the given name and argument types '(?P<call>.+?)'\. You might",
        _CALLED,
    ),
    _says(r"Function '(?P<call>\w+)' failed to match any signature", _CALLED),
    _says(r"satisfy a call to '(?P<call>\w+)' function", _CALLED),
    SAME_NAMES,
    DUPLICATED,
    AMBIGUOUS,
    _says(
        r"Cannot cast (?:string|value) '(?P<value>.*?)' to value of (?P<type>.+?) type",
        "the text '{value}' is not a valid {type}",
    ),
    _says(r"Unsupported CAST from (?P<one>.+?) to (?P<other>[^\n]+)", _CAST),
    _says(r"Cast error: Casting from (?P<one>.+?) to (?P<other>[^\n]+)", _CAST),
    _says(
        r"Cannot coerce arithmetic expression (?P<what>.+?) to valid types",
        "{what} cannot be computed; cast one of the two",
    ),
    _says(
        r"Cannot infer common (?:argument |string )?type for [\w ]*?operation (?P<what>[^\n]+)",
        "{what}: the two types are incompatible; cast one of them",
    ),
    _says(
        r"common type to coerce (?P<one>.+?) and (?P<other>.+?) in LIKE",
        "LIKE does not accept {one} and {other}; cast one of them",
    ),
    _says(r"regex parse error:.*?error: (?P<why>[^\n]+)", "invalid regular expression: {why}"),
    _says(r"CompiledTooBig\(", _LARGE_REGEX),
    _says(r"Compiled regex exceeds size limit", _LARGE_REGEX),
    _says(r"currently only supports a single SQL statement", "send one statement at a time"),
    _says(r"No SQL statements were provided", "the statement is empty"),
    _says(r"Physical plan does not support logical expression InSubquery", _NO_CONDITION),
    _says(r"Physical plan does not support logical expression Exists", _NO_CONDITION),
    _says(r"Physical plan does not support logical expression SetComparison", _NO_CONDITION),
    _says(r"In/Exist/SetComparison subquery can only be used in", _NO_CONDITION),
    _says(r"Physical plan does not support logical expression ScalarSubquery", _CORRELATED),
    _says(
        r"(?:^|not implemented: )TOP$",
        "SELECT TOP is not supported; write LIMIT at the end of the statement",
    ),
    _says(
        r"Query (?P<verb>INSERT|UPDATE|DELETE)\b.* not implemented yet",
        "WITH is not supported before {verb}; write it behind the table, as in "
        "INSERT INTO t WITH x AS (SELECT ...) SELECT ... FROM x",
    ),
    _says(
        r"Physical plan does not support logical expression OuterReferenceColumn",
        "a subquery in FROM (LATERAL) cannot compute with columns of the tables before it; write a "
        "JOIN with GROUP BY, a window function, or unnest in the SELECT list of a subquery",
    ),
    _says(
        r"Physical plan does not support logical expression (?P<what>[A-Z]\w+)",
        "{what} is not supported at this place in a statement",
    ),
    _says(
        r"Unsupported ast node in sqltorel: (?P<what>\w+)",
        "{what} is not supported in SQL at this place",
    ),
    _says(
        r"array_resize: failed to convert size", "array_resize needs a size that is not negative"
    ),
    _says(r"Null byte at position \d+", "a name or a text contains the character NUL; remove it"),
    _says(
        r"Error parsing timestamp from '(?P<value>.*?)'",
        "the text '{value}' is not a valid TIMESTAMP",
    ),
    _says(r"Invalid function '(?P<name>[^']+)'\.\s*Did you mean '(?P<near>[^']+)'\?",
          "function '{name}' not found; did you mean '{near}'?"),
    _says(r"Unable to cast to (?P<type>Date\d+)", "a text is not a valid DATE"),
    _says(r"^Format error", "the format is invalid"),
    _says(r"Unsupported Value '\w+\(", "this kind of literal is not supported"),
    _says(
        r"expr type (?P<one>.+?) can't cast to (?P<other>.+?) in SetComparison",
        "ANY and ALL do not accept {one} and {other}; cast one of them",
    ),
    _says(
        r"(?P<value>-?[\d.]+) is too large to store in a Decimal\d+ of precision (?P<digits>\d+)",
        "{value} has more digits than DECIMAL({digits}, ...) allows",
    ),
    _says(
        r"Invalid batch column at '\d+' has null but schema specifies non-nullable",
        "the rows have NULL in a column that takes none; in a folder of files, a column whose "
        "values are the names of folders does not",
    ),
)  # fmt: skip
"""Errors of statements that always have the same text for users; the first match applies."""
