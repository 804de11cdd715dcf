"""Fields of NULL structs in files are NULL: random statements have the rows that DuckDB gives."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import MemoryTable, TableSpec
from caraway_engine import known_faults
from caraway_engine.known_faults import DoubtedRelations, fields
from caraway_engine.sessions.sessions import Session
from caraway_plugins.sources.files import LocalFiles
from tests.engine.known_faults.memory import check_same, duckdb_over
from tests.kit import generating
from tests.kit.engine import session

INNER = pa.struct([pa.field("q", pa.int64(), nullable=False), pa.field("r", pa.string())])
S = pa.struct([pa.field("a", pa.int64(), nullable=False), ("b", pa.string()), ("i", INNER)])
_VALUES = [
    {"a": 1, "b": "x", "i": {"q": 3, "r": "x"}},
    None,
    {"a": 2, "b": None, "i": None},
    {"a": 2, "b": "y", "i": {"q": 1, "r": None}},
    None,
    {"a": 0, "b": "x", "i": None},
]
ROWS = pa.table({
    "id": pa.array(range(1, 7), pa.int64()),
    "s": pa.array(_VALUES, S),
    "l": pa.array([[value] if number != 2 else None for number, value in enumerate(_VALUES)],
                  pa.list_(S)),
})  # fmt: skip
_READS = (
    "s['a']", "x.s['a']", "s['i']['q']", "x.s.a", "s.i.q", "x.s.i['q']", "l[1]['a']",
    "get_field(s, 'a')", "get_field(s, 'i', 'q')", "l[1]['i']['q']", "coalesce(s['a'], 7)",
    "s['a'] + id", "get_field(s['i'], 'q')",
)  # fmt: skip
_FORMS = (
    "SELECT id, {} AS v FROM x",
    "SELECT id FROM x WHERE {} IS NULL",
    "SELECT id FROM x WHERE {} > 1 OR {} = 0",
    "SELECT id FROM x WHERE NOT ({} IN (1, 2))",
    "SELECT {} AS v, count(*) AS n FROM x GROUP BY 1 HAVING count(*) > 0",
    "SELECT {} AS v, s['b'] AS w, sum(id) AS n FROM x GROUP BY {}, s['b']",
    "SELECT sum({}) AS a, count({}) AS b, max({}) AS c FROM x",
    "SELECT id, lag({}) OVER (ORDER BY id) AS v, rank() OVER (ORDER BY {}) AS w FROM x",
    "SELECT DISTINCT {} AS v FROM (SELECT id, s, l FROM x WHERE id > 1) x",
    "WITH c AS (SELECT id + 0 AS id, s, l FROM x) SELECT id, {} AS v FROM c x",
    "SELECT x.id, o.id AS o FROM x JOIN (SELECT id, {} AS v FROM x) o ON o.v = x.id",
    "SELECT o.id, {} AS v FROM u o LEFT JOIN x ON o.k = x.s.a",
    "SELECT id FROM x WHERE id IN (SELECT {} FROM x)",
    "SELECT {} AS v FROM x UNION SELECT {} FROM x WHERE {} > 0",
    "SELECT sum(v) AS v FROM (SELECT {} AS v FROM x ORDER BY {}, id LIMIT 3) q",
    "SELECT (SELECT max({}) FROM x WHERE x.id = u.k) AS v FROM u",
    "SELECT id, {} AS v FROM shown x",
)
_OTHERS = {"u": pa.table({"id": pa.array([1, 2, 3]), "k": pa.array([2, 7, None], pa.int64())})}
_VIEWS = {"shown": "SELECT id, s, l FROM x WHERE id < 6"}


@st.composite
def statements(draw: DrawFn) -> tuple[str, str]:
    """Draw a statement, and the same one for DuckDB."""
    form = draw(st.sampled_from(_FORMS))
    reads = draw(st.lists(st.sampled_from(_READS), min_size=4, max_size=4))
    if "GROUP BY {}" in form:
        reads = reads[:1] * 2
    if "u o" in form or "x.id, o.id" in form:
        reads = [each.replace("id", "x.id") if "+ id" in each else each for each in reads]
    return form.format(*reads), form.format(*map(_for_duckdb, reads))


def _for_duckdb(read: str) -> str:
    named = {
        "get_field(s, 'a')": "s['a']",
        "get_field(s, 'i', 'q')": "s['i']['q']",
        "get_field(s['i'], 'q')": "s['i']['q']",
    }
    return named.get(read, read)


def _of_files(folder: Path) -> TableSpec:
    request = SourceRequest(TableName("x"), "file", f"{folder}/", {}, (), "read", folder, folder)
    return LocalFiles().resolve(request)


def _parquet(folder: Path) -> TableSpec:
    pq.write_table(ROWS.slice(0, 3), folder / "a.parquet", row_group_size=2)
    pq.write_table(ROWS.slice(3), folder / "b.parquet")
    return _of_files(folder)


def _some_required(folder: Path) -> TableSpec:
    """Return files of which one lets the fields be NULL; the table lets them, too."""
    optional = pa.struct([pa.field("q", pa.int64()), pa.field("r", pa.string())])
    struct = pa.struct([pa.field("a", pa.int64()), ("b", pa.string()), ("i", optional)])
    schema = pa.schema([("id", pa.int64()), ("s", struct), ("l", pa.list_(struct))])
    rows = pa.Table.from_pylist(ROWS.slice(3).to_pylist(), schema)
    pq.write_table(ROWS.slice(0, 3), folder / "a.parquet")
    pq.write_table(rows, folder / "b.parquet")
    return _of_files(folder)


def _arrow(folder: Path) -> TableSpec:
    feather.write_feather(ROWS, folder / "a.arrow", compression="uncompressed")
    return _of_files(folder)


def _memory(_: Path) -> TableSpec:
    return MemoryTable(ROWS.schema, ROWS)


KINDS: dict[str, Callable[[Path], TableSpec]] = {
    "parquet": _parquet,
    "parquet of two kinds": _some_required,
    "arrow": _arrow,
    "memory": _memory,
}


@pytest.fixture(scope="module", params=KINDS)
def over(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    spec = KINDS[request.param](tmp_path_factory.mktemp("x"))
    others = {name: MemoryTable(rows.schema, rows) for name, rows in _OTHERS.items()}
    return session({"x": spec, **others, **_VIEWS})


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb_over({"x": ROWS, **_OTHERS}, _VIEWS)


def test_generated_reads(over: Session, duck: duckdb.DuckDBPyConnection) -> None:
    generating.check_same(statements(), 60, lambda pair: check_same(over, duck, *pair))


@pytest.mark.full
def test_other_reads(
    over: Session, duck: duckdb.DuckDBPyConnection, request: pytest.FixtureRequest
) -> None:
    generating.check_others(statements(), 1500, lambda pair: check_same(over, duck, *pair), request)


@pytest.fixture(scope="module")
def doubted() -> Callable[[str], str]:
    """Return what gives the text of a statement over tables that are not masked."""
    context = SessionContext(SessionConfig())
    context.from_arrow(ROWS, "x")

    def text(sql: str) -> str:
        relations = DoubtedRelations(unmasked=frozenset({"x"}))
        return known_faults.planned(context, sql, context.sql, doubted=relations).sql

    return text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x.id, l[1] FROM (SELECT 1 AS id, [2] AS l) x",
        "SELECT x.id AS a FROM x WHERE x.id > 1",
        "SELECT s['b'] FROM (SELECT 1 AS id, {b: random()} AS s) q",
        "SELECT s FROM x",
    ],
)
def test_other_statements_stay(doubted: Callable[[str], str], sql: str) -> None:
    assert doubted(sql) == sql


def test_random_structs_are_computed_once(doubted: Callable[[str], str]) -> None:
    sql = doubted("SELECT {a: random()}['a'] AS r, s['a'] AS a FROM x")
    assert sql.count("random") == 1 and "CASE WHEN (s IS NOT NULL)" in sql


def test_names_of_columns_stay(doubted: Callable[[str], str]) -> None:
    sql = doubted("SELECT s['i']['q'], unnest(s), x.s.i.r FROM x")
    for name in ('"x.s[i][q]"', '"x.s.a"', '"x.s.b"', '"x.s.i"', '"x.s[i][r]"'):
        assert f"AS {name}" in sql


@pytest.mark.parametrize("words", ["s['a']", "x.s", "get_field(s, 'a')", "UNNEST(s)"])
def test_what_may_read_fields(words: str) -> None:
    assert fields.may_apply(words)


def test_what_reads_none() -> None:
    assert not fields.may_apply("SELECT a, sum(b) FROM t WHERE c = 1")
