"""A session that takes over from earlier ones reads as a new one does."""

import asyncio
from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import CarawayError, InvalidQueryError, TableNotFoundError
from caraway_core.ids import CatalogVersion, PrincipalId, TableName
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_core.tables import MemoryTable, TableSpec, ViewTable
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, snapshot

TABLES: list[TableSpec] = [
    memory(x=[1, 2, 2]),
    memory(x=[5]),
    memory(x=["a", "b"]),
    memory(x=[1.5, float("nan"), None], y=[1, 2, 3]),
    memory(y=[7]),
    MemoryTable(pa.schema([("x", pa.int64())]), pa.table({"x": pa.array([], pa.int64())})),
]
NAMES = ["a", "s.a", 'o"Dd', "v", "w", "s.v"]


def written(name: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


# Most views read one of few names, so that many catalogs have views that can be planned.
NAME = st.sampled_from(["a", "a", "s.a", "s.a", "v", "v", 'o"Dd', "w", "s.v"]).map(written)
QUERY = st.one_of(
    st.builds("SELECT * FROM {}".format, NAME),
    st.builds("SELECT x, x AS again FROM {} WHERE x IS NOT NULL".format, NAME),
    st.builds("SELECT l.x FROM {} l JOIN {} r ON l.x = r.x".format, NAME, NAME),
    st.builds("SELECT l.x FROM {} l JOIN {} r ON l.x IS NOT DISTINCT FROM r.x".format, NAME, NAME),
    st.builds("SELECT x FROM {} UNION ALL SELECT x FROM {}".format, NAME, NAME),
    st.builds("SELECT count(*) AS x FROM {} WHERE EXISTS (SELECT 1 FROM {})".format, NAME, NAME),
    st.builds("WITH a AS (SELECT 1 AS x) SELECT a.x FROM a, {} b".format, NAME),
    st.just("SELECT 1 AS x"),
    st.builds("SELECT nope FROM {}".format, NAME),
    st.just("SELECT * FROM runtime.moment"),
    st.just("SELEC 1"),
)
# Objects are drawn, so that some tables of two snapshots are the same object, as in a catalog.
VIEWS = st.shared(st.lists(QUERY.map(ViewTable), min_size=1, max_size=6), key="views")
TABLE: st.SearchStrategy[TableSpec] = st.sampled_from(TABLES)
VIEW: st.SearchStrategy[TableSpec] = VIEWS.flatmap(st.sampled_from)
KEY = st.sampled_from(NAMES).map(TableName)
Catalog = dict[TableName, TableSpec]
Specs = Mapping[str, TableSpec | str]


@st.composite
def catalogs(draw: st.DrawFn) -> list[Catalog]:
    """Catalogs of which each differs from the one before in a table or two."""
    first = {TableName(name): draw(TABLE) for name in ("a", "s.a")}
    found: list[Catalog] = [{**first, **draw(st.dictionaries(KEY, VIEW, min_size=1, max_size=5))}]
    for _ in range(draw(st.integers(1, 3))):
        edited = dict(found[-1])
        for name in draw(st.lists(KEY, min_size=1, max_size=2, unique=True)):
            spec = draw(TABLE | TABLE | VIEW | st.none())
            if spec is None:
                edited.pop(name, None)
            else:
                edited[name] = spec
        found.append(edited)
    return found


def moment(viewer: PrincipalId | None) -> pa.Table:
    return pa.table({"x": [1]})


def installed(
    specs: Mapping[TableName, TableSpec], version: int, *previous: Session
) -> tuple[Session, Mapping[TableName, str]]:
    made = Session(
        EngineSettings(2),
        CatalogSnapshot(CatalogVersion(version), specs, {}),
    )
    return made, made.install(*previous)


def told(of: Session, sql: str) -> object:
    """The rows of a statement without their order, or its error."""
    try:
        found = asyncio.run(rows(of, sql))
    except CarawayError as exc:
        return type(exc), exc.message
    return sorted(map(str, found))


@settings(max_examples=40, deadline=None)
@given(catalogs(), st.data())
def test_a_session_that_takes_over_reads_as_one_that_begins_anew(
    all_specs: list[Catalog], data: st.DataObject
) -> None:
    sessions: list[Session] = []
    for version, specs in enumerate(all_specs, start=1):
        previous = [*reversed(sessions)]
        if data.draw(st.booleans()):
            previous = data.draw(st.permutations(sessions)) if sessions else []
        made, failed = installed(specs, version, *previous)
        new, wanted = installed(specs, version)
        assert failed == wanted
        assert made.views == new.views
        for name in (*NAMES, "nothing"):
            sql = f"SELECT * FROM {written(name)}"
            assert told(made, sql) == told(new, sql)
        listing = (
            "SELECT table_schema, table_name, column_name, data_type "
            "FROM information_schema.columns WHERE table_schema <> 'information_schema'"
        )
        assert told(made, listing) == told(new, listing)
        sessions.append(made)
    # Those before stay as they were.
    for version, (specs, before) in enumerate(zip(all_specs, sessions, strict=True), start=1):
        new, _ = installed(specs, version)
        for name in specs:
            sql = f"SELECT * FROM {written(name)}"
            assert told(before, sql) == told(new, sql)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM nothing", "nothing"),
        ("SELECT nope FROM t", "nope"),
        ("SELEC 1", "SELEC"),
        ("SELECT 1; SELECT 2", ""),
        ("DELETE FROM t", ""),
        ("SELECT * FROM runtime.moment", "view 'v' reads a runtime table; only statements may"),
        ("SELECT * FROM v", ""),
        ("SELECT * FROM caraway_source.t", ""),
        ("", ""),
        ("SELECT $1", "view 'v' has the placeholder '$1', and a view takes no values"),
        ("SELECT x FROM t WHERE x = :low", "placeholder '$low'"),
        ("SELECT x FROM t LIMIT ?", "placeholder '$1'"),
        ("EXPLAIN SELECT 1", "view 'v' is no query"),
        ("EXPLAIN ANALYZE SELECT 1", "view 'v' is no query"),
        ("SHOW TABLES", ""),
        ("DESCRIBE t", "view 'v' is no query"),
        ("SET x = 1", ""),
        ("COPY t TO 'x.csv'", ""),
    ],
)
def test_a_view_that_cannot_be_planned_fails_alone(query: str, words: str) -> None:
    specs: Specs = {"t": memory(x=[1]), "v": query, "w": "SELECT x FROM t", "u": "SELECT * FROM v"}
    made = Session(EngineSettings(2), snapshot(specs, {"moment": moment}))
    failed = made.install(None)
    assert set(failed) == {"v", "u"}
    assert words in failed[TableName("v")]
    assert told(made, "SELECT x FROM w") == ["{'x': 1}"]
    with pytest.raises(TableNotFoundError):
        asyncio.run(rows(made, "SELECT * FROM v"))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_views_in_a_circle_fail_and_no_others(count: int) -> None:
    circle = {f"v{n}": f"SELECT * FROM v{(n + 1) % count}" for n in range(count)}
    made = Session(EngineSettings(2), snapshot({**circle, "z": "SELECT 1 AS x"}))
    assert set(made.install(None)) == set(circle)
    assert told(made, "SELECT * FROM z") == ["{'x': 1}"]
    mended = {**circle, "v0": "SELECT 5 AS x", "z": "SELECT 1 AS x"}
    after = Session(EngineSettings(2), snapshot(mended, version=2))
    assert after.install(made) == {}
    assert told(after, f"SELECT * FROM v{count - 1}") == ["{'x': 5}"]


def test_a_chain_of_views_is_planned_in_any_order() -> None:
    chain = {f"v{n}": f"SELECT x + 1 AS x FROM v{n + 1}" for n in range(20)}
    specs: Specs = {**chain, "v20": "SELECT x FROM t", "t": memory(x=[0])}
    for order in (list(specs), list(specs)[::-1]):
        made = Session(EngineSettings(2), snapshot({name: specs[name] for name in order}))
        assert made.install(None) == {}
        assert told(made, "SELECT x FROM v0") == ["{'x': 20}"]
        assert made.views[TableName("v0")].reads >= {TableName("t")}


def test_the_view_that_is_planned_is_told_before_and_nothing_after() -> None:
    specs: Specs = {"t": memory(x=[1]), "v": "SELECT * FROM t", "bad": "SELECT * FROM nothing"}
    seen: list[TableName | None] = []
    made = Session(EngineSettings(2), snapshot(specs))
    made.install(None, note=seen.append)
    assert seen[-1] is None
    assert {TableName("v"), TableName("bad")} == {each for each in seen if each}


def test_views_over_what_is_missing_name_it_until_it_comes() -> None:
    first = Session(EngineSettings(2), snapshot({"v": "SELECT * FROM t", "w": "SELECT * FROM v"}))
    assert set(first.install(None)) == {"v", "w"}
    assert first.views[TableName("v")].missing == "t"
    second = Session(
        EngineSettings(2),
        snapshot({"v": "SELECT * FROM t", "w": "SELECT * FROM v", "t": memory(x=[1])}, version=2),
    )
    assert second.install(first) == {}
    assert second.views[TableName("v")].missing is None
    assert told(second, "SELECT * FROM w") == ["{'x': 1}"]


def test_a_view_that_fails_otherwise_lacks_no_table() -> None:
    """It was tried first while the view that it reads had not been planned."""
    made = Session(EngineSettings(2), snapshot({"w": "SELECT nope FROM v", "v": "SELECT x FROM t"}))
    assert set(made.install(None)) == {"v", "w"}
    assert made.views[TableName("w")].missing == "v"
    after = Session(
        EngineSettings(2),
        snapshot(
            {"w": "SELECT nope FROM v", "v": "SELECT x FROM t", "t": memory(x=[1])}, version=2
        ),
    )
    failed = after.install(made)
    assert "nope" in failed[TableName("w")]
    assert TableName("w") not in after.views


def test_reading_the_same_table_by_each_of_its_names() -> None:
    made = Session(
        EngineSettings(2),
        snapshot({"t": memory(x=[1]), "s.t": memory(x=[2]), "S.t": memory(x=[3])}),
    )
    assert made.install(None) == {}
    for name, value in (
        ("t", 1), ("public.t", 1), ("caraway.public.t", 1), ('"public"."t"', 1), ("s.t", 2),
        ("caraway.s.t", 2), ("S.t", 2), ('"S"."t"', 3),
    ):  # fmt: skip
        assert told(made, f"SELECT x FROM {name}") == [f"{{'x': {value}}}"], name


def test_no_statement_reads_what_belongs_to_the_runtime() -> None:
    made = Session(EngineSettings(2), snapshot({"t": memory(x=[1])}))
    made.install(None)
    listed = told(made, "SELECT DISTINCT table_schema AS s FROM information_schema.tables")
    assert "caraway_source" not in str(listed)
    schemas = told(made, "SELECT schema_name FROM information_schema.schemata")
    assert "caraway_source" not in str(schemas)
    for sql in (
        "SELECT * FROM caraway_source.t",
        "CREATE VIEW z AS SELECT 1",
        "CREATE EXTERNAL TABLE z STORED AS CSV LOCATION '/etc/passwd'",
        "COPY t TO '/tmp/x.csv'",
        "SET datafusion.execution.batch_size = 1",
        "SELECT * FROM '/etc/passwd'",
    ):
        with pytest.raises(CarawayError):
            asyncio.run(rows(made, sql))
    with pytest.raises(InvalidQueryError):
        made.start(Statement("SELECT 1; DROP TABLE t", {}))
