"""Plans of several producers are answered as statements of the same meaning."""

import random
from typing import Any

import pyarrow as pa
import pytest
from substrait.plan_pb2 import Plan

from caraway_core.errors import InvalidQueryError, QueryError, TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_engine.client_plans import refusals
from caraway_engine.sessions.sessions import Session
from tests.engine.client_plans.built import IBIS, SUBSTRAIT
from tests.kit import client_plans, engine
from tests.kit.client_plans import Handwritten, field, literal, plan, project, read

T: dict[str, Any] = {
    "k": pa.array([1, 2, None, 4, 2]),
    "s": ["a", "b", "a", None, "a"],
    "v": pa.array([10, 25, 30, None, 40]),
}
U: dict[str, Any] = {"uk": pa.array([2, 4, 9, None]), "w": [0.5, 1.5, None, 2.5]}
BUILT = [*SUBSTRAIT.items(), *IBIS.items()]
TABLES = {"t": engine.memory(**T), "u": engine.memory(**U), "sales.o": engine.memory(id=[7])}
NAMED = Statement("-- a plan", {})
T_READ = read("t", k="i64", s="string", v="i64")


@pytest.fixture(scope="module")
def session() -> Session:
    return engine.session(TABLES)


def sorted_rows(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(list(each.values())) for each in rows)


async def answer(of: Session, encoded: bytes) -> list[dict[str, Any]]:
    return await engine.rows(of, of.sql_of(NAMED, encoded))


def refused(of: Session, encoded: bytes) -> str:
    with pytest.raises(InvalidQueryError) as found:
        of.sql_of(NAMED, encoded)
    return found.value.message


@pytest.mark.parametrize(("sql", "encoded"), BUILT)
async def test_plans_of_published_packages(sql: str, encoded: str, session: Session) -> None:
    found = await answer(session, bytes.fromhex(encoded))
    assert found
    assert sorted_rows(found) == sorted_rows(await engine.rows(session, sql))


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s, count(*) AS n, sum(v) AS sum FROM t WHERE k > 0 GROUP BY s HAVING count(*) > 1",
        "SELECT t.k, u.w FROM t FULL JOIN u ON t.k = u.uk AND t.v > 15",
        "SELECT k FROM t EXCEPT SELECT uk FROM u",
        "SELECT k, row_number() OVER (PARTITION BY s ORDER BY v DESC) AS n FROM t",
        "SELECT CASE WHEN v > 20 THEN 'x' ELSE s END AS c, coalesce(k, 0) AS k FROM t",
        "SELECT k FROM t WHERE k IN (SELECT uk FROM u) OR s LIKE 'a%'",
        "SELECT (SELECT max(w) FROM u) AS m, k + 1 AS k FROM t ORDER BY v NULLS FIRST LIMIT 2",
        "SELECT count(*) AS n FROM (SELECT DISTINCT s FROM t)",
        "SELECT 1 AS one, 'it''s' AS s, CAST(NULL AS DOUBLE) AS nothing",
    ],
)
async def test_plans_of_datafusion(sql: str, optimized: bool, session: Session) -> None:
    tables = {"t": pa.table(T), "u": pa.table(U)}
    encoded = client_plans.produced(sql, tables, optimized=optimized)
    if optimized and " OR " in sql:
        assert "type of join" in refused(session, encoded)
        return
    found = await answer(session, encoded)
    wanted = await engine.rows(session, sql)
    assert [list(each) for each in found] == [list(each) for each in wanted]
    assert sorted_rows(found) == sorted_rows(wanted)


def test_an_extension_by_the_older_form_beside_newer_ones_is_not_known(session: Session) -> None:
    decoded = Plan.FromString(bytes.fromhex(IBIS["SELECT k, s FROM t WHERE v > 20"]))
    decoded.extension_urns.add(extension_urn_anchor=9, urn="extension:com.example:other")
    assert "not known" in refused(session, decoded.SerializeToString())


async def test_names_are_those_of_the_root(session: Session) -> None:
    encoded = plan(T_READ, 'A "b"', "select", "$1")
    assert list((await answer(session, encoded))[0]) == ['A "b"', "select", "$1"]


async def test_order_and_offset_survive_operations_above_them(session: Session) -> None:
    by_v = {"expr": field(2), "direction": "SORT_DIRECTION_DESC_NULLS_LAST"}
    ordered = {"sort": {"input": T_READ, "sorts": [by_v]}}
    cut = {"fetch": {"input": ordered, "countExpr": literal(i64=3), "offsetExpr": literal(i64=1)}}
    made = Handwritten()
    kept = {"filter": {"input": cut, "condition": made.call("is_not_null", field(0))}}
    doubled = project(kept, made.call("multiply", field(2), literal(i64=2)), emit=[3])
    assert await answer(session, made.plan(doubled, "d")) == [{"d": 50}, {"d": 20}]


async def test_a_column_may_have_the_name_of_a_key(session: Session) -> None:
    by_v = {"expr": field(2), "direction": "SORT_DIRECTION_DESC_NULLS_LAST"}
    ordered = project({"sort": {"input": T_READ, "sorts": [by_v]}}, emit=[0])
    cut = {"fetch": {"input": ordered, "countExpr": literal(i64=3)}}
    assert await answer(session, plan(cut, "v")) == [{"v": 2}, {"v": None}, {"v": 2}]


async def test_a_sort_by_a_literal_is_no_place_of_a_column(session: Session) -> None:
    key = {"expr": literal(i64=3), "direction": "SORT_DIRECTION_ASC_NULLS_LAST"}
    keyed = {"sort": {"input": T_READ, "sorts": [key]}}
    assert "ORDER" not in session.sql_of(NAMED, plan(keyed, "k", "s", "v"))


async def test_grouping_by_a_literal_is_no_place_of_a_column(session: Session) -> None:
    made = Handwritten()
    grouped = {
        "aggregate": {
            "input": T_READ,
            "groupingExpressions": [literal(i64=2)],
            "groupings": [{"expressionReferences": [0]}],
            "measures": [{"measure": made.function("count", type_=client_plans.I64)}],
        }
    }
    assert await answer(session, made.plan(grouped, "key", "n")) == [{"key": 2, "n": 5}]


@pytest.mark.parametrize("names", [["t"], ["public", "t"], ["caraway", "public", "t"]])
async def test_tables_by_one_to_three_names(names: list[str], session: Session) -> None:
    rel = read("t", k="i64")
    rel["read"]["namedTable"]["names"] = names
    assert len(await answer(session, plan(rel, "k"))) == 5


async def test_a_table_of_another_schema(session: Session) -> None:
    assert await answer(session, plan(read("sales.o", id="i64"), "id")) == [{"id": 7}]


def test_a_table_that_is_not_there(session: Session) -> None:
    with pytest.raises(TableNotFoundError, match="nowhere"):
        session.sql_of(NAMED, plan(read("nowhere", a="i64"), "a"))


def test_a_table_that_the_statement_may_not_read(session: Session) -> None:
    limited = Statement("-- a plan", {}, readable=frozenset({TableName("u")}))
    with pytest.raises(TableNotFoundError, match="'t'"):
        session.sql_of(limited, plan(read("t", k="i64"), "k"))


@pytest.mark.parametrize(
    ("rel", "said"),
    [
        (read("t", nope="i64"), "no column 'nope'"),
        (read("t", k="string"), "has the type int64, but the plan says string"),
        (read("t", k={"i64": {"typeVariationReference": 1}}), r"i64 \(unsigned\)"),
        ({"read": {"namedTable": {}}}, "no name"),
        ({"read": {"localFiles": {"items": [{"uriFile": "/etc/passwd"}]}}}, "local_files"),
        ({"read": {"extensionTable": {}}}, "extension_table"),
        ({"extensionLeaf": {}}, "extension_leaf"),
        ({"write": {"input": T_READ}}, "a plan that writes"),
        ({"ddl": {}}, "a plan that writes"),
        ({"hashJoin": {}}, "hash_join"),
        (project(T_READ, field(9), emit=[3]), "column 9 of 3"),
        (project(T_READ, emit=[5]), "does not have"),
        (project(T_READ, field(0, outerReference={"stepsOut": 4}), emit=[3]), "column 0 of 0"),
        (project(T_READ, {"scalarFunction": {"functionReference": 77}}, emit=[3]), "anchor"),
        ({"fetch": {"input": T_READ, "countExpr": literal(i64=-1)}}, "negative"),
        ({"sort": {"input": T_READ, "sorts": [{"expr": field(0), "direction": 9}]}}, "direction"),
        ({"filter": {"input": T_READ}}, "Expression.None"),
        ({}, "Rel.None"),
    ],
)  # fmt: skip
def test_what_is_refused(rel: dict[str, Any], said: str, session: Session) -> None:
    with pytest.raises(InvalidQueryError, match=f"(?i){said}") as found:
        session.sql_of(NAMED, plan(rel, "a", "b", "c"))
    assert found.value.message.startswith("the Substrait plan cannot be run: ")


@pytest.mark.parametrize(
    ("encoded", "said"),
    [
        (b"garbage", "no substrait.Plan"),
        (b"\x00" * 1000, "no substrait.Plan"),
        (Plan().SerializeToString() or b"\x08", "no substrait.Plan"),
        (plan(T_READ, "a", "b", "a"), "the name 'a'"),
        (plan(T_READ, "a"), "1 names"),
        (plan(T_READ, "a", "b", "c", version={"majorNumber": 1}), "version 1"),
        (plan(T_READ, "a", "b", "c", relations=[]), "one relation"),
        (b"\xfa\x3f\x01x", "has the field"),
    ],
)
def test_what_is_no_plan(encoded: bytes, said: str, session: Session) -> None:
    assert said in refused(session, encoded)


def test_depth_is_bounded(session: Session) -> None:
    filters = b""
    for _ in range(10_000):
        filters = b"\x12" + _varint(len(filters)) + filters
    root = b"\x0a" + _varint(len(filters)) + filters
    relation = b"\x12" + _varint(len(root)) + root
    assert "nested" in refused(session, b"\x1a" + _varint(len(relation)) + relation)


def test_size_is_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MOST_MESSAGES", 1_000)
    options = [literal(i64=n) for n in range(500)]
    among = {"singularOrList": {"value": field(0), "options": options}}
    large = {"filter": {"input": T_READ, "condition": among}}
    assert "more than 1,000 messages" in refused(session, plan(large, "k", "s", "v"))
    wide = project(T_READ, emit=[0] * 6_000)
    assert "more than 5,000 columns" in refused(session, plan(wide, *map(str, range(6_000))))


def test_damaged_plans_are_errors_of_the_plan(session: Session) -> None:
    chance = random.Random(5)
    texts = [bytes.fromhex(each) for _, each in BUILT]
    for _ in range(2_000):
        damaged = bytearray(chance.choice(texts))
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            session.sql_of(NAMED, bytes(damaged))
        except InvalidQueryError:
            pass
        except QueryError as exc:
            pytest.fail(f"{type(exc).__name__}: {exc.message} for {damaged.hex()}")


def _varint(number: int) -> bytes:
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])
