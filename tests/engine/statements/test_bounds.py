"""Which statements are too large to plan, and which are not."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.known_faults import syntax
from caraway_engine.sessions.sessions import Session
from caraway_engine.statements import bounds
from caraway_engine.statements.bounds import BOUNDS, ViewSizes
from tests.differential import tpc
from tests.kit.engine import memory, rows, session, snapshot

MOST = {name: bound.most for name, bound in BOUNDS.items()}


def doubling(count: int, read: str = "SELECT * FROM {0}, {0} x") -> str:
    ctes = ", ".join(f"c{i} AS ({read.format(f'c{i - 1}')})" for i in range(1, count))
    return f"WITH c0 AS (SELECT a FROM t), {ctes} SELECT * FROM c{count - 1}"


TOO_LARGE = {
    "nesting": "SELECT " + "(" * 46 + "1" + ")" * 46,
    "logical_chain": "SELECT 1 FROM t WHERE " + " OR ".join("a=1" for _ in range(10_000)),
    "arithmetic_chain": "SELECT " + "+".join("1" for _ in range(50_000)),
    "computing_chain": "SELECT " + "||".join("a" for _ in range(5_000)) + " FROM t",
    "windows": "SELECT " + ",".join("sum(a) OVER ()" for _ in range(201)) + " FROM t",
    "operators": f"WITH c AS (SELECT 1 FROM t WHERE {' OR '.join(['a=1'] * 1_000)}) SELECT * FROM "
    + ", ".join(f"c c{i}" for i in range(20)),
    "joined": doubling(25),
    "tables": doubling(25, "SELECT * FROM {0} UNION ALL SELECT * FROM {0}"),
    "branches": " UNION ALL ".join("SELECT 1" for _ in range(5_000)),
    "columns": "SELECT " + ",".join("a" for _ in range(MOST["columns"] + 1)) + " FROM t",
    "entries": f"SELECT 1 FROM t WHERE a IN ({','.join('1' for _ in range(MOST['entries'] + 1))})",
    "arguments": f"SELECT concat({','.join('1' for _ in range(MOST['arguments'] + 1))})",
    "grouping_sets": "SELECT 1 FROM t GROUP BY CUBE(" + ",".join("abcdefghijklmnop") + ")",
    "literal_bytes": "SELECT '" + "x" * (MOST["literal_bytes"] + 1) + "'",
    "name_bytes": f"SELECT a AS {'a' * 10_001} FROM t",
    "text_bytes": "WITH c AS (SELECT '" + "x" * 1_000_000 + "' AS a) SELECT * FROM "
    + ", ".join(f"c c{i}" for i in range(20)),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_statement_beyond_a_bound_is_refused(name: str) -> None:
    bound = BOUNDS[name]
    with pytest.raises(InvalidQueryError) as refused:
        bounds.check(TOO_LARGE[name])
    message = refused.value.message
    assert bound.thing in message and bound.remedy in message
    assert f"at most {bound.most:,}" in message


def test_every_bound_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "sql-limits.md").read_text()
    documented = [int(each.replace(",", "")) for each in re.findall(r"\| ([\d,]+) \|\n", text)]
    assert sorted(documented) == sorted(MOST.values())


def test_every_bound_has_a_statement_beyond_it() -> None:
    assert TOO_LARGE.keys() == BOUNDS.keys()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM t WHERE " + " OR ".join(f"a = {i}" for i in range(2_000)),
        "SELECT 1 FROM t WHERE " + " OR ".join(f"(a = {i} AND b = {i})" for i in range(1_000)),
        f"SELECT 1 FROM t WHERE a IN ({', '.join(str(i) for i in range(20_000))})",
        f"SELECT 1 FROM t WHERE a IN ({', '.join(f'-{i}' for i in range(20_000))})",
        f"INSERT INTO t VALUES {', '.join(f'({i}, {i})' for i in range(10_000))}",
        "SELECT " + ", ".join(f"a + {i} AS c{i}" for i in range(2_000)) + " FROM t",
        "SELECT * FROM t0 " + " ".join(f"JOIN t{i} ON t0.a = t{i}.a" for i in range(1, 60)),
        f"SELECT '{'x' * 500_000}'",
        doubling(6),
        doubling(8, "SELECT * FROM {0} UNION ALL SELECT * FROM {0}"),
        "SELECT '" + "(" * 100_000 + "'",
        f"SELECT 1 /* {'a OR ' * 10_000} */",
    ],
)
def test_what_programs_send_is_allowed(sql: str) -> None:
    bounds.check(sql)


def test_benchmarks_are_far_from_the_bounds() -> None:
    for text in (*tpc.tpch_texts().values(), *tpc.tpcds_texts().values()):
        found = bounds.measured(text)
        for name, most in MOST.items():
            assert getattr(found, name) <= most // 2, (name, text)


_AROUND = (
    ("(", ")"), ("abs(", ")"), ("CASE WHEN a THEN 1 ELSE ", " END"), ("CASE WHEN ", " THEN 1 END"),
    ("NOT ", ""), ("- ", ""), ("[", "]"), ("CAST(", " AS INT)"), ("(SELECT ", ")"),
    ("EXISTS (SELECT 1 WHERE ", ")"), ("a IN (SELECT b FROM t WHERE ", ")"), ("(a AND b = ", ")"),
    ("(a + b * ", ")"), ("a OR b AND c = d + ", ""), ("substring(", " from 1)"), ("(1, ", ")"),
    ("sum(1) FILTER (WHERE ", ")"), ("(SELECT 1 FROM (SELECT ", ") x)"), ("{a: ", "}"),
    ("(WITH c AS (SELECT 1) SELECT ", ")"), ("coalesce(a, ", ")"), ("a::int + ", ""),
)  # fmt: skip


def nested_at_random(seed: int) -> str:
    """Nest what can be nested, as deep as is allowed."""
    random_ = random.Random(seed)
    among = random_.sample(_AROUND, random_.choice((1, 2, 3, 5, len(_AROUND))))
    made, deeper = "1", "1"
    while len(deeper) < 4_000 and bounds.measured(f"SELECT {deeper}"):
        made, (before, after) = deeper, random_.choice(among)
        deeper = f"{before}{made}{after}"
        try:
            bounds.check_nesting(f"SELECT {deeper}")
        except InvalidQueryError:
            break
    return f"SELECT {made}"


@pytest.mark.parametrize("seed", range(60))
def test_what_is_nested_as_deep_as_allowed_is_parsed(seed: int) -> None:
    # Beyond its limit the parser takes twice as long for each level; this would never end.
    try:
        syntax.parse(nested_at_random(seed))
    except syntax.SyntaxUnknownError as exc:
        assert "recursion" not in str(exc)


@pytest.mark.parametrize("around", [("CAST(", " AS INT)"), ("(NOT ", ")"), ("ceil(", ")")])
def test_what_the_parser_never_ends_with_is_refused(around: tuple[str, str]) -> None:
    sql = f"SELECT {around[0] * 48}a{around[1] * 48}"
    with pytest.raises(InvalidQueryError, match="levels of parentheses"):
        bounds.check(sql)


def test_values_of_parameters_count_where_they_are_used() -> None:
    value = "x" * 1_000_000
    bounds.check("SELECT $a", {"a": value})
    with pytest.raises(InvalidQueryError, match="each use of a parameter"):
        bounds.check("SELECT " + ", ".join("$a" for _ in range(17)), {"a": value})
    with pytest.raises(InvalidQueryError, match="one text or value"):
        bounds.check("SELECT $a", {"a": value * 2})


def test_views_on_views_multiply() -> None:
    views = {"v0": "SELECT a FROM t"} | {
        f"v{i}": f"SELECT x.a FROM v{i - 1} x JOIN v{i - 1} y ON x.a = y.a" for i in range(1, 26)
    }
    made = Session(EngineSettings(2), snapshot({"t": memory(a=[1]), **views}))
    failed = made.install(None)
    largest = max(int(name[1:]) for name in views if name not in failed)
    assert 2**largest <= MOST["joined"] < 2 ** (largest + 1)
    assert "tables in one FROM" in failed[TableName(f"v{largest + 1}")]
    with pytest.raises(InvalidQueryError, match="tables in one FROM"):
        made.analyse(Statement(f"SELECT * FROM v{largest}, v{largest} x", {}))


@given(st.text(alphabet="'\"$:/*ab1 \n[](),+", max_size=60))
def test_short_texts_are_measured_as_long_ones_are(sql: str) -> None:
    """A text that the quick look accepts is within the bounds."""
    if bounds._is_small(sql, ViewSizes()):
        bounds.measured(sql)


@pytest.mark.parametrize("name", TOO_LARGE)
def test_the_quick_look_lets_no_large_statement_pass(name: str) -> None:
    assert not bounds._is_small(TOO_LARGE[name], ViewSizes())


async def test_star_counts_as_one_column() -> None:
    # docs/reference/sql-limits.md says so: the bound is on what a statement writes.
    made = session({"wide": memory(**{f"c{number}": [1] for number in range(5_001)})})
    (row,) = await rows(made, "SELECT * FROM wide")
    assert len(row) == 5_001
