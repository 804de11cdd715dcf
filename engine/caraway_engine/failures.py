"""Turns what the engine raises into errors that say what failed and what to do.

The engine's Python errors carry only text, so the text decides. Here are those that need to know
the tables, the settings or the caller; `engine_errors` words all others.
"""

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Sequence

from caraway_core.errors import (
    DiskFullError,
    ExecutionError,
    InvalidQueryError,
    OutOfMemoryQueryError,
    QueryError,
    QueryForbiddenError,
    TableNotFoundError,
)
from caraway_core.ids import TableName
from caraway_engine import engine_errors, type_words
from caraway_engine.engine_errors import Fault
from caraway_engine.known_faults.sums import OVERFLOW

logger = logging.getLogger(__name__)
_LONGEST_CAUSE = 4_000

_BACKTRACE = re.compile(r"\n\nbacktrace:.*", re.DOTALL)
_HINT = re.compile(r"\.?\s*This (issue was|was) likely caused by a bug in DataFusion.*", re.DOTALL)
_MISSING_TABLE = re.compile(r"table '(?P<name>[^']+)' not found")
_MISSING_FIELD = re.compile(
    r"No field named (?P<name>.+?)\.(?: Did you mean '(?P<near>[^']+)'\?)?\s*"
    r"(?P<case>Column names are case sensitive\.[^\n]*)?\s*"
    r"(?:Valid fields are (?P<valid>.*?)\.?)?\s*$",
    re.DOTALL,
)
_REFUSED = re.compile(r"(?P<kind>DDL|DML|Statement) not supported: (?P<what>.*)")
# Errors of casts that say that a number is too large: some stand in guards that users never see.
_TOO_LARGE = re.compile(
    r"Cast error: (?:value of (?P<value>-?\d+) is out of range (?P<type>U?Int\d+)"
    r"|Can't cast value (?P<other>-?[\d.e+]+) to type (?P<narrow>U?Int\d+)"
    r"|Cannot cast string '" + OVERFLOW + r" in (?P<what>[A-Za-z ]+?) -?[\d.]*')"
)
_MOST_NAMES = 12

_DISK_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|File too large"
    r"|during the spilling process has exceeded"
)
_ASKED_FOR = re.compile(r"allocate additional ([\d.]+ [KMGT]?B)")
_GONE = re.compile(r"not found|No such file", re.IGNORECASE)


def translate(exc: BaseException, *, tables: Iterable[str], planning: bool) -> QueryError:
    """Return our error for one that the engine raised while planning or while running."""
    text = _HINT.sub("", _BACKTRACE.sub("", str(exc))).strip()
    if _DISK_FULL.search(text):
        return DiskFullError(
            "the disk for rows that do not fit in memory is full. Free or add space there (see "
            "`runtime.query.temp_directory` in the manifest), raise `runtime.query.memory_limit`, "
            "or select fewer columns or rows."
        )
    for recognise in (_refused, _out_of_memory, _syntax, _missing_table, _missing_field):
        if error := recognise(text, tables):
            return error
    if too_large := _TOO_LARGE.search(text):
        return _overflow(too_large)
    told = engine_errors.read(text)
    match told.fault:
        case Fault.SOURCE:
            return _source_error(told.message)
        case Fault.STATEMENT:
            return InvalidQueryError(told.message)
    if planning or "was not provided a value" in text:
        return InvalidQueryError(told.message or "the statement cannot be planned")
    # What went wrong inside is for those who look after the engine.
    logger.error("the engine failed", extra={"cause": text[:_LONGEST_CAUSE]})
    return ExecutionError(
        "the engine failed while it ran the statement; the log has the cause. Write the statement "
        "in another way, and report the fault"
    )


def _overflow(found: re.Match[str]) -> QueryError:
    if found["what"]:
        what = f"the {found['what']} is too large for its type"
    else:
        type_, value = found["type"] or found["narrow"], found["value"] or found["other"]
        what = f"the number {value} does not fit the type {type_words.NAMES.get(type_, type_)}"
    return InvalidQueryError(
        f"overflow: {what}; cast what is computed to DECIMAL(38, 0) or DOUBLE first, "
        "such as sum(CAST(x AS DECIMAL(38, 0)))"
    )


def _source_error(plain: str) -> QueryError:
    if _GONE.search(plain):
        return ExecutionError(
            f"a file of a dataset is gone: {plain}. It was removed while the query read it; "
            "run the query again, or check the dataset with GET /v1/datasets?status=true."
        )
    return ExecutionError(
        f"a dataset cannot be read: {plain}. The data is not what its schema says, or the "
        "source failed; check the file and the dataset's params, then run the query again."
    )


def _refused(text: str, tables: Iterable[str]) -> QueryError | None:
    match = _REFUSED.search(text)
    if not match:
        return None
    what = match["what"].splitlines()[0].strip()
    if match["kind"] == "DML" and what != "COPY":
        return QueryForbiddenError(
            f"{what} is refused: this statement may only read. Writing needs a dataset with "
            "`access: read_write` and a key that ends in `:rw`."
        )
    return InvalidQueryError(
        f"{_statement_words(what)} is not supported: statements read and, where a dataset is "
        "`read_write`, write rows; tables are defined in the manifest."
    )


def _statement_words(kind: str) -> str:
    """Name a kind of statement as SQL does: `CreateMemoryTable` is CREATE TABLE."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper().split()
    return " ".join(word for word in words if word not in ("MEMORY", "VARIABLE"))


def _out_of_memory(text: str, tables: Iterable[str]) -> QueryError | None:
    if "Resources exhausted" not in text:
        return None
    asked = _ASKED_FOR.search(text)
    detail = f" (it asked for {asked[1]} more)" if asked else ""
    hint = " A join keeps its smaller side in memory." if "JoinInput" in text else ""
    return OutOfMemoryQueryError(
        f"the query needs more memory than it may use{detail}.{hint} Select fewer columns or "
        "rows, or raise `runtime.query.memory_limit` in the manifest (on executors `--memory`)."
    )


def _syntax(text: str, tables: Iterable[str]) -> QueryError | None:
    match = re.search(r'(?:ParserError|TokenizerError|RecursionLimitExceeded)\("?(.*?)"?\)$', text)
    if not match:
        if "RecursionLimitExceeded" in text:
            return InvalidQueryError("the statement is nested too deeply to parse")
        return None
    return InvalidQueryError(f"syntax error: {match[1]}")


def _missing_table(text: str, tables: Iterable[str]) -> QueryError | None:
    match = _MISSING_TABLE.search(text)
    if not match:
        return None
    name = match["name"].removeprefix("caraway.").removeprefix("public.")
    message = f"table '{name}' not found{suggest(name, sorted(tables), 'tables')}"
    return TableNotFoundError(message, TableName(name))


def _missing_field(text: str, tables: Iterable[str]) -> QueryError | None:
    match = _MISSING_FIELD.search(text)
    if not match:
        return None
    name = match["name"].strip()
    valid = [field.strip() for field in (match["valid"] or "").split(", ") if field.strip()]
    near = f"; did you mean '{match['near']}'?" if match["near"] else None
    hint = near + _listed(valid, "columns") if near else suggest(name, valid, "columns", _bare)
    case = " Names with capitals need double quotes." if match["case"] else ""
    return InvalidQueryError(f"column '{name}' not found{hint}{case}")


def suggest(
    name: str,
    known: Sequence[str],
    kind: str,
    key: Callable[[str], str] = lambda text: text,
) -> str:
    """Word the nearest known name, if one is near, and what else there is."""
    by_key = {key(candidate).lower(): candidate for candidate in known}
    near = difflib.get_close_matches(key(name).lower(), by_key, n=1, cutoff=0.6)
    hint = f"; did you mean '{by_key[near[0]]}'?" if near else ";"
    return hint + _listed(known, kind)


def _listed(known: Sequence[str], kind: str) -> str:
    if not known:
        return f" There are no {kind}."
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    return f" Known {kind}: {', '.join(known[:_MOST_NAMES])}{more}."


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1].strip('"')
