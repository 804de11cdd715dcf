"""Each row of the table is provoked from the real engine, or has a reason why it is not.

A new DataFusion with other messages fails here, row by row.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_engine.errors import engine_errors, failures
from caraway_engine.errors import engine_messages as messages
from caraway_engine.errors.engine_messages import EngineMessage
from caraway_engine.sessions.sessions import Session
from tests.engine.errors import provoking
from tests.engine.errors.failing_tables import TABLE
from tests.kit import sources
from tests.kit.engine import rows, session


@dataclass(frozen=True, slots=True)
class Verbatim:
    """A message that no test provokes, and the reason."""

    text: str
    why: str


Said = str | Callable[[Path], str] | Verbatim
"""A statement or a call that provokes a message; otherwise its text."""
LARGE = "'((((a{1,50}){1,50}){1,50}){1,50}){1,50}'"
NOTHING = Verbatim(
    "\n\nbacktrace:    0: std::backtrace_rs::backtrace::trace",
    "only a build with the feature `backtrace` has it; it is not to come to users then",
)
OS_ERROR = "an error of the system, in the words of its C library; no test fills a disk"
SINGLES: Mapping[str, Said] = {
    "BACKTRACE": NOTHING,
    "BUG_HINT": "SELECT array_resize([1], -1)",
    "MISSING_TABLE": "SELECT * FROM nowhere",
    "MISSING_FIELD": "SELECT i2 FROM t",
    "REFUSED[0]": "CREATE TABLE x AS SELECT 1",
    "REFUSED[1]": "DELETE FROM t",
    "REFUSED[2]": "SET x = 1",
    "SYNTAX[0]": "SELEC 1",
    "SYNTAX[1]": "SELECT 'a",
    "TOO_DEEP": provoking.nested,
    "NO_VALUE": provoking.no_value,
    "ROW_OF_EXPRESSIONS": "SELECT i FROM t WHERE (i, i) = (CAST(1 AS INT), 1)",
    "ONLY_LITERALS[0]": "SELECT * FROM generate_series(i, 2)",
    "ONLY_LITERALS[1]": "SELECT * FROM generate_series('a', 2)",
    "ONLY_LITERALS[2]": "SELECT date_part(s, now()) FROM t",
    "ONLY_LITERALS[3]": "SELECT INTERVAL s FROM t",
    "ONLY_LITERALS[4]": "SELECT get_field(named_struct('a', 1), s) FROM t",
    "ONLY_LITERALS[5]": "SELECT sum(i) OVER (ORDER BY i ROWS i PRECEDING) FROM t",
    "SAME_NAMES": "SELECT i, i FROM t",
    "DUPLICATED": "SELECT i FROM t, t",
    "AMBIGUOUS": "SELECT i FROM t a JOIN t b ON a.i = b.i",
    "TOO_LARGE[0]": "SELECT 9223372036854775807 + 1",
    "TOO_LARGE[1]": "SELECT CAST(300 AS TINYINT)",
    "SUM_TOO_LARGE": "SELECT sum(i + 9223372036854775804) FROM t",
    "EXHAUSTED": provoking.sort_without_memory,
    "ASKED_FOR": provoking.join_without_memory,
    "JOIN_INPUT": provoking.join_without_memory,
    "DISK_FULL[0]": Verbatim("IO error: No space left on device (os error 28)", OS_ERROR),
    "DISK_FULL[1]": Verbatim("IO error: Disk quota exceeded (os error 122)", OS_ERROR),
    "DISK_FULL[2]": Verbatim("IO error: File too large (os error 27)", OS_ERROR),
    "DISK_FULL[3]": provoking.spill_too_much,
    "CONSTANT_FILTER": provoking.constant_filter,
    "GONE[0]": provoking.removed_parquet,
    "GONE[1]": provoking.removed_parquet,
}
WORDED: Sequence[Said] = (
    "SELECT 1 / 0",
    "SELECT row_number() OVER (ORDER BY i * i > 4) FROM t",
    "SELECT abs(s) FROM t",
    "SELECT sum(s) FROM t",
    "SELECT ln('a')",
    "SELECT i AS a, s AS a FROM t",
    "SELECT i FROM t, t",
    "SELECT i FROM t a JOIN t b ON a.i = b.i",
    "SELECT CAST('x' AS INT)",
    "SELECT CAST(l AS INT) FROM t",
    Verbatim(
        "While casting struct field 'a'\ncaused by\n"
        "Arrow error: Cast error: Casting from Boolean to Date32 not supported",
        "the planner refuses such a cast; arrow says it where a cast is made while rows are read",
    ),
    "SELECT i + s FROM t",
    "SELECT l = 1 FROM t",
    "SELECT i LIKE 'a' FROM t",
    "SELECT regexp_like(s, '(') FROM t",
    f"SELECT 'a' ~ {LARGE}",
    f"SELECT regexp_replace(s, {LARGE}, 'x') FROM t",
    "SELECT 1; SELECT 2",
    "--",
    "SELECT i IN (SELECT i FROM t) FROM t",
    "SELECT EXISTS (SELECT 1 FROM t u WHERE u.i = t.i) FROM t",
    Verbatim(
        "This feature is not implemented: Physical plan does not support logical expression "
        "SetComparison(SetComparison { expr: Column",
        "DataFusion 55 fails in an optimizer rule before it comes to that",
    ),
    "SELECT i FROM t ORDER BY i IN (SELECT i FROM t)",
    "SELECT i FROM t WHERE i > (SELECT count(*) FROM t u WHERE u.i < t.i)",
    "SELECT TOP 5 i FROM t",
    "WITH x AS (SELECT 1 AS i) INSERT INTO t (i) SELECT i FROM x",
    "SELECT * FROM t, LATERAL (SELECT t.i + 1) x",
    "SELECT i FROM t WHERE row_number() OVER () = 1",
    'SELECT s COLLATE "x" FROM t',
    "SELECT array_resize([1], -1)",
    "SELECT '\0'",
    "SELECT TIMESTAMP 'foo'",
    "SELECT fooo(1)",
    "SELECT to_date(s) FROM t",
    "SELECT to_char(ts, '%E') FROM t",
    "SELECT b'01'",
    "SELECT i > ALL (SELECT st FROM t) FROM t",
    "SELECT CAST(1e30 AS DECIMAL(10, 2))",
    Verbatim(
        "Invalid argument error: Invalid batch column at '2' has null but schema specifies "
        "non-nullable",
        "it needs a folder of files with partitions: see test_folder_inserts",
    ),
)
"""Statements that provoke the rows of `messages.WORDED`, in the same order."""
KINDS: Mapping[str, Said] = {
    "Error during planning": "SELECT * FROM nowhere",
    "Execution error": "SELECT make_date(2020, 13, 1)",
    "Schema error": "SELECT i2 FROM t",
    "SQL error": "SELEC 1",
    "Cast error": "SELECT CAST('x' AS INT)",
    "Compute error": f"SELECT 'a' ~ {LARGE}",
    "Parser error": "SELECT INTERVAL '1 foo'",
    "Invalid argument error": "SELECT CAST(1e30 AS DECIMAL(10, 2))",
    "Arithmetic overflow": provoking.product_too_large,
    "This feature is not implemented": "SELECT CAST(l AS INT) FROM t",
    "Not yet implemented": Verbatim(
        "Arrow error: Not yet implemented: Row format support not yet implemented for: Union",
        "arrow says it of types that no statement and no file of ours has",
    ),
    "Divide by zero error": "SELECT 1 / 0",
    "Invalid or Unsupported Configuration": "COPY t TO 'x'",
    "C Data interface error": "SELECT '\0'",
    "Object Store error": provoking.removed_csv,
    "Parquet error": provoking.short_parquet,
    "Parquet argument error": provoking.damaged_parquet,
    "Avro error": provoking.damaged_avro,
    "AvroError": Verbatim(
        "AvroError(ParseError): bad varint",
        "no call of DataFusion 55 is known that says it; what is damaged is an `Avro error`",
    ),
    "IO error": provoking.spill_nowhere,
    "Io error": provoking.spill_too_much,
    "Csv error": provoking.damaged_csv,
    "Json error": provoking.damaged_json,
    "Ipc error": Verbatim(
        "Arrow error: Ipc error: Not expecting a schema when messages are read",
        "a kind of arrow for streams; DataFusion reads files, of which `Parser error` is said",
    ),
    "Error while parsing value": provoking.text_in_a_number,
    "Internal error": "SELECT array_resize([1], -1)",
    "ExecutionJoin error": Verbatim(
        "ExecutionJoin error: task 7 panicked", "only a panic on a thread of the engine says it"
    ),
    "Substrait error": provoking.damaged_plan,
    "FFI error": Verbatim(
        "FFI error: the provider failed", "only tables of other libraries say it; we have none"
    ),
    "Memory error": Verbatim(
        "Arrow error: Memory error: Overflow computing required size",
        "arrow says it of sizes that no memory has",
    ),
    "DataFusion error": "SELECT 1 / 0",
    "External error": f"SELECT regexp_replace(s, {LARGE}, 'x') FROM t",
    "External": provoking.removed_parquet,
    "Arrow error": "SELECT 1 / 0",
    "Generic S3 error": provoking.store_away,
    "type_coercion": "SELECT i LIKE 'a' FROM t",
}


def singles() -> Mapping[str, EngineMessage]:
    """Return every message that has a name in the table."""
    found: dict[str, EngineMessage] = {}
    for name, value in vars(messages).items():
        if isinstance(value, EngineMessage):
            found[name] = value
        elif isinstance(value, tuple) and value is not messages.WORDED:
            found |= {f"{name}[{number}]": each for number, each in enumerate(value)
                      if isinstance(each, EngineMessage)}  # fmt: skip
    return found


@pytest.fixture(scope="module")
def made() -> Session:
    return session({"t": TABLE})


async def said(made: Session, by: Said, folder: Path, patch: pytest.MonkeyPatch) -> str:
    """Return the engine's own text."""
    if isinstance(by, Verbatim):
        return by.text
    return await of_statement(made, by, patch) if isinstance(by, str) else by(folder)


async def of_statement(made: Session, sql: str, patch: pytest.MonkeyPatch) -> str:
    seen: list[str] = []

    def note(exc: BaseException, **_: object) -> QueryError:
        seen.append(str(exc))
        return InvalidQueryError("seen")

    patch.setattr(failures, "translate", note)
    with pytest.raises(QueryError):
        await rows(made, sql)
    return seen[0]


def test_each_row_is_provoked_or_is_kept_for_a_reason() -> None:
    assert SINGLES.keys() == singles().keys()
    assert len(WORDED) == len(messages.WORDED)
    kinds = {*messages.STATEMENT_KINDS, *messages.SOURCE_KINDS, *messages.ENGINE_KINDS,
             *messages.WRAPPERS}  # fmt: skip
    assert kinds <= KINDS.keys() and len(KINDS) == len(kinds) + 1 + len(messages.STEPS)


@pytest.mark.parametrize("name", SINGLES)
async def test_what_the_table_names_is_said(
    made: Session, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = await said(made, SINGLES[name], tmp_path, monkeypatch)
    assert singles()[name].find(text), text


@pytest.mark.parametrize(
    ("message", "by"),
    list(zip(messages.WORDED, WORDED, strict=True)),
    ids=[each.pattern.pattern[:60] for each in messages.WORDED],
)
async def test_what_is_worded_is_said(
    made: Session,
    message: EngineMessage,
    by: Said,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = await said(made, by, tmp_path, monkeypatch)
    assert message.find(engine_errors._kinds(text)[1]), text


@pytest.mark.parametrize("kind", KINDS)
async def test_kinds_are_said(
    made: Session, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = await said(made, KINDS[kind], tmp_path, monkeypatch)
    found = [each.split("\n")[0].rstrip(": ") for each in engine_errors._kinds(text)[0]]
    assert kind in found, text


def matches_by_hand(tree: ast.Module) -> list[int]:
    """Return the lines that search the text of an error without the table."""
    found = []
    for node in ast.walk(tree):
        looked: Sequence[ast.expr] = ()
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            looked = node.comparators
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("search", "match", "fullmatch", "startswith", "endswith"):
                looked = [node.func.value, *node.args]
        calls = [call for each in looked for call in ast.walk(each) if isinstance(call, ast.Call)]
        if any(isinstance(call.func, ast.Name) and call.func.id == "str" for call in calls):
            found.append(looked[0].lineno)
    return found


def test_nobody_else_looks_into_the_text_of_an_error() -> None:
    found = {
        f"{path}:{line}"
        for path, tree in sources.modules().items()
        if path.startswith("engine/") and not path.endswith("/engine_messages.py")
        for line in matches_by_hand(tree)
    }
    assert found == set(), "add a row to engine_messages"


@pytest.mark.parametrize(
    "text", ["'x' in str(exc)", "_X.search(str(exc))", "str(exc).startswith('x')"]
)
def test_a_look_into_the_text_of_an_error_is_found(text: str) -> None:
    assert matches_by_hand(ast.parse(text)) == [1]
