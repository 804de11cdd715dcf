"""Translates engine exceptions to errors that say what failed and what to do.

`engine_messages` recognises them by their text. This module handles those that depend on the
tables, the settings or the caller; `engine_errors` handles all others.
"""

import difflib
import logging
import re
from collections.abc import Callable, Iterable, Sequence

from caraway_core.errors import (
    CarawayError,
    DiskFullError,
    ExecutionError,
    InvalidQueryError,
    OutOfMemoryQueryError,
    QueryError,
    QueryForbiddenError,
    TableNotFoundError,
)
from caraway_core.ids import TableName
from caraway_engine.errors import engine_errors, failing, type_words
from caraway_engine.errors import engine_messages as messages
from caraway_engine.errors.engine_errors import FaultOwner

logger = logging.getLogger(__name__)
_LONGEST_CAUSE = 4_000
_MOST_NAMES = 12
_OF_USERS = frozenset({"current_user", "session_user"})
_DEFECTS = (AssertionError, AttributeError, LookupError, NameError, RecursionError, TypeError)
"""Exceptions that mean a defect in our own code. Their texts do not help users."""


def translate(exc: BaseException, *, tables: Iterable[str], planning: bool) -> QueryError:
    """Return our error for an exception that the engine raised while planning or running."""
    text = messages.BACKTRACE.pattern.sub("", str(exc))
    text = messages.BUG_HINT.pattern.sub("", text).strip()
    if (remote := failing.found(text)) is not None:
        return remote
    if messages.find(messages.DISK_FULL, text):
        return DiskFullError(
            "the disk for rows that do not fit in memory is full. Free or add space there (see "
            "`runtime.query.temp_directory` in the manifest), raise `runtime.query.memory_limit`, "
            "or select fewer columns or rows."
        )
    for recognise in (_refused, _out_of_memory, _syntax, _missing_table, _missing_field):
        if error := recognise(text, tables):
            return error
    if error := _overflow(text):
        return error
    failure = engine_errors.read(text)
    match failure.fault:
        case FaultOwner.SOURCE:
            return _source_error(failure.message)
        case FaultOwner.STATEMENT:
            return InvalidQueryError(failure.message)
    if planning or messages.NO_VALUE.find(text):
        return InvalidQueryError(failure.message or "the statement cannot be planned")
    # Internal causes are for operators, so log them.
    logger.error("the engine failed", extra={"cause": text[:_LONGEST_CAUSE]})
    return ExecutionError(
        "the engine failed while running the statement; the log has the cause. Rewrite the "
        "statement, and report the bug"
    )


def _overflow(text: str) -> QueryError | None:
    if match := messages.SUM_TOO_LARGE.find(text):
        what = f"the {match['what']} is too large for its type"
    elif match := messages.find(messages.TOO_LARGE, text):
        type_ = type_words.NAMES.get(match["type"], match["type"])
        what = f"the number {match['value']} does not fit the type {type_}"
    else:
        return None
    return InvalidQueryError(
        f"overflow: {what}; cast what is computed to DECIMAL(38, 0) or DOUBLE first, "
        "such as sum(CAST(x AS DECIMAL(38, 0)))"
    )


def _source_error(plain: str) -> QueryError:
    if messages.find(messages.GONE, plain):
        return ExecutionError(
            f"a file of a dataset is missing: {plain}. It was removed while the query read it; "
            "run the query again, or check the dataset with GET /v1/datasets?status=true."
        )
    return ExecutionError(
        f"a dataset cannot be read: {plain}. The data does not match its schema, or the "
        "source failed; check the file and the dataset's params, then run the query again."
    )


def _refused(text: str, tables: Iterable[str]) -> QueryError | None:
    match = messages.find(messages.REFUSED, text)
    if not match:
        return None
    what = match["what"].splitlines()[0].strip()
    if match["kind"] == "DML" and what != "COPY":
        return QueryForbiddenError(
            f"{what} is refused: this statement is read-only. Writing needs a dataset with "
            "`access: read_write` and a key that ends in `:rw`."
        )
    return InvalidQueryError(
        f"{_statement_words(what)} is not supported: statements read and, where a dataset is "
        "`read_write`, write rows; tables are defined in the manifest, or created in a source "
        "catalog that is `read_write_create`."
    )


def _statement_words(kind: str) -> str:
    """Return the SQL name of a kind of statement: `CreateMemoryTable` is CREATE TABLE."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper().split()
    return " ".join(word for word in words if word not in ("MEMORY", "VARIABLE"))


def _out_of_memory(text: str, tables: Iterable[str]) -> QueryError | None:
    if not messages.EXHAUSTED.find(text):
        return None
    asked = messages.ASKED_FOR.find(text)
    detail = f" (it requested {asked['size']} more)" if asked else ""
    is_join = messages.JOIN_INPUT.find(text) is not None
    hint = " A join keeps its smaller side in memory." if is_join else ""
    return OutOfMemoryQueryError(
        f"the query needs more memory than it may use{detail}.{hint} Select fewer columns or "
        "rows, or raise `runtime.query.memory_limit` in the manifest (on executors `--memory`)."
    )


def _syntax(text: str, tables: Iterable[str]) -> QueryError | None:
    if match := messages.find(messages.SYNTAX, text):
        return InvalidQueryError(f"syntax error: {match['why']}")
    if messages.TOO_DEEP.find(text):
        return InvalidQueryError("the statement is nested too deeply to parse")
    return None


def _missing_table(text: str, tables: Iterable[str]) -> QueryError | None:
    match = messages.MISSING_TABLE.find(text)
    if not match:
        return None
    name = match["name"].removeprefix("caraway.").removeprefix("public.")
    message = f"table '{name}' not found{suggest(name, sorted(tables), 'tables')}"
    return TableNotFoundError(message, TableName(name))


def _missing_field(text: str, tables: Iterable[str]) -> QueryError | None:
    match = messages.MISSING_FIELD.find(text)
    if not match:
        return None
    name = match["name"].strip()
    if name.lower() in _OF_USERS:
        return InvalidQueryError(
            f"{name.lower()} is not supported: a request has a key and no user of a database"
        )
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
    """Return a hint with the nearest known name, if there is one, and the other names."""
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


def reason(name: TableName, exc: BaseException) -> str:
    """Return why a table cannot be registered. Other tables are not affected."""
    if isinstance(exc, CarawayError):
        return exc.message
    if isinstance(exc, OSError) and exc.strerror:
        return f"its files cannot be read: {exc.strerror}"
    if isinstance(exc, Exception) and not isinstance(exc, _DEFECTS):
        return translate(exc, tables=(), planning=True).message
    if isinstance(exc, KeyboardInterrupt | SystemExit):
        raise exc
    logger.error("table cannot be registered", exc_info=exc, extra={"table": name})
    return "its table cannot be registered; see the engine's log"
