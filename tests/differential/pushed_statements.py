"""Random statements over the hostile table, of the shapes that databases are asked to answer.

Each has one answer, if it has one: what depends on the order of rows has a total one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.differential.hostile_table import COLUMNS, LITERALS, NAME

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_DIRECTIONS = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST")
_PATTERNS = ("%a%", "a_", "_", "", "A%", "%ä%", "a%b", "% ", "%\n%", "___", "%%")
_WIDTHS = ("SMALLINT", "INT", "BIGINT")


@dataclass(frozen=True, slots=True)
class Value:
    """An expression and its kind."""

    sql: str
    kind: str


@dataclass(frozen=True, slots=True)
class Pushed:
    """A statement, and whether its rows have an order."""

    sql: str
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """What follows FROM, and columns that are different in all of its rows."""

    sql: str
    key: str = "id"


@st.composite
def statements(draw: DrawFn) -> Pushed:
    """Draw a statement."""
    shape = draw(st.sampled_from((_rows, _rows, _groups, _groups, _firsts, _firsts, _totals)))
    return draw(shape(_source(draw)))


def _source(draw: DrawFn) -> Source:
    """Return the table, its first rows or a join with itself, with or without conditions."""
    where = f" WHERE {draw(conditions())}" if draw(st.integers(0, 3)) else ""
    match draw(st.integers(0, 9)):
        case 0:
            limit = draw(st.integers(0, 60))
            return Source(f"(SELECT * FROM {NAME}{where} ORDER BY id LIMIT {limit}) AS {NAME}")
        case 1 | 2 | 3 | 4:
            return Source(f"{_join(draw)}{where}", "id, other")
        case _:
            return Source(f"{NAME}{where}")


def _join(draw: DrawFn) -> str:
    """Return a join of two sides of the table, of which each column is taken from one side."""
    left, right = draw(_names()), draw(_names())
    if COLUMNS[left] == "float" and draw(st.booleans()):
        left = "id"  # Most databases do not join by doubles exactly.
    if COLUMNS[left] != COLUMNS[right] or draw(st.booleans()):
        right = left
    on = [f"l.{left} = r.{right}"]
    verbs = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
    if draw(st.integers(0, 2)) == 0:
        kind = draw(st.sampled_from([*dict.fromkeys(COLUMNS.values())]))
        names = [name for name, each in COLUMNS.items() if each == kind]
        first, second = (draw(st.sampled_from(names)) for _ in range(2))
        on.append(f"l.{first} {draw(st.sampled_from(_COMPARISONS))} r.{second}")
        verbs = verbs[:2]  # The engine refuses some others, depending on its plan.
    sides = [draw(_side()) for _ in range(2)]
    verb = draw(st.sampled_from(verbs))
    taken = [f"{draw(st.sampled_from('lr'))}.{each} AS {each}" for each in COLUMNS if each != "id"]
    return (
        f"(SELECT l.id AS id, r.id AS other, {', '.join(taken)} "
        f"FROM {sides[0]} AS l {verb} {sides[1]} AS r ON {' AND '.join(on)}) AS {NAME}"
    )


def _names() -> SearchStrategy[str]:
    return st.sampled_from([each for each in COLUMNS if each != "b"])


@st.composite
def _side(draw: DrawFn) -> str:
    if draw(st.booleans()):
        return NAME
    return f"(SELECT * FROM {NAME} WHERE {draw(conditions())})"


@st.composite
def _rows(draw: DrawFn, source: Source) -> Pushed:
    verb = draw(st.sampled_from(("SELECT", "SELECT", "SELECT", "SELECT DISTINCT")))
    one = values() if verb == "SELECT" else _keys()
    chosen = draw(st.lists(one, min_size=1, max_size=4))
    return Pushed(f"{verb} {_listed(chosen)} FROM {source.sql}")


@st.composite
def _groups(draw: DrawFn, source: Source) -> Pushed:
    keys = draw(st.lists(_keys(), min_size=1, max_size=2))
    measures = draw(st.lists(_aggregates(), min_size=1, max_size=3))
    having = draw(st.sampled_from(("", "", "", " HAVING count(*) > 1")))
    places = ", ".join(str(number + 1) for number in range(len(keys)))
    listed = _listed([*keys, *measures])
    return Pushed(f"SELECT {listed} FROM {source.sql} GROUP BY {places}{having}")


@st.composite
def _totals(draw: DrawFn, source: Source) -> Pushed:
    return Pushed(
        f"SELECT {_listed(draw(st.lists(_aggregates(), min_size=1, max_size=4)))} FROM {source.sql}"
    )


@st.composite
def _firsts(draw: DrawFn, source: Source) -> Pushed:
    # The engine may drop a key that a condition fixes, and -0.0 equals 0.0 but comes before it.
    ordered = _keys() if "f = " in source.sql or "f IN" in source.sql else values()
    keys = draw(st.lists(ordered, min_size=1, max_size=2))
    order = ", ".join(f"{each.sql}{draw(st.sampled_from(_DIRECTIONS))}" for each in keys)
    limit = draw(st.sampled_from(("", " LIMIT 0", " LIMIT 1", " LIMIT 7", " LIMIT 500")))
    offset = draw(st.sampled_from(("", "", " OFFSET 3")))
    chosen = draw(st.lists(values(), max_size=2))
    listed = _listed([Value("id", "int"), *chosen])
    order = f"{order}, {source.key}"
    return Pushed(f"SELECT {listed} FROM {source.sql} ORDER BY {order}{limit}{offset}", True)


def _listed(chosen: Sequence[Value]) -> str:
    return ", ".join(f"{each.sql} AS c{number}" for number, each in enumerate(chosen))


@st.composite
def _aggregates(draw: DrawFn) -> Value:
    value = draw(_keys())
    choices = ["count(*)", f"count({value.sql})", f"count(DISTINCT {value.sql})"]
    if value.kind != "bool":
        choices += [f"min({value.sql})", f"max({value.sql})"] * 2
    if value.kind in ("int", "uint", "decimal"):
        choices.append(f"sum({value.sql})")
    if value.kind == "decimal":  # Those of integers are doubles, whose order counts.
        choices.append(f"avg({value.sql})")
    chosen = draw(st.sampled_from(choices))
    if draw(st.integers(0, 5)) == 0:
        chosen += f" FILTER (WHERE {draw(conditions(0))})"
    return Value(chosen, "any")


def _keys() -> SearchStrategy[Value]:
    """Return expressions of which equal ones are the same: not numbers with two zeros."""
    return values().filter(lambda value: value.sql != "f")


@st.composite
def values(draw: DrawFn, kind: str | None = None, depth: int = 1) -> Value:
    """Draw an expression, of any kind or of one."""
    names = [name for name, each in COLUMNS.items() if kind in (None, each)]
    name = draw(st.sampled_from(names))
    value = Value(name, COLUMNS[name])
    if not depth or draw(st.integers(0, 2)):
        return value
    match value.kind:
        case "int":
            return draw(_whole_numbers(value))
        case "decimal":
            sign = draw(st.sampled_from("+-*"))
            other = draw(_operands("decimal"))
            return Value(f"({value.sql} {sign} {other})", "decimal")
        case "bool":
            return Value(f"({draw(conditions(0))})", "bool")
    return value


@st.composite
def _whole_numbers(draw: DrawFn, value: Value) -> Value:
    other = draw(_operands("int"))
    width = draw(st.sampled_from(_WIDTHS))
    return Value(
        draw(
            st.sampled_from(
                (
                    f"({value.sql} + {other})",
                    f"({value.sql} - {other})",
                    f"({value.sql} * {other})",
                    f"CAST({value.sql} AS {width})",
                )
            )
        ),
        "int",
    )


@st.composite
def _operands(draw: DrawFn, kind: str) -> str:
    if draw(st.booleans()):
        return draw(values(kind, 0)).sql
    return draw(st.sampled_from(LITERALS[kind]))


@st.composite
def conditions(draw: DrawFn, depth: int = 2) -> str:
    """Draw a condition."""
    if depth and draw(st.integers(0, 2)) == 0:
        left, right = (draw(conditions(depth - 1)) for _ in range(2))
        return f"({left} {draw(st.sampled_from(('AND', 'AND', 'OR')))} {right})"
    if depth and draw(st.integers(0, 5)) == 0:
        return f"NOT ({draw(conditions(depth - 1))})"
    value = draw(values(depth=min(depth, 1)))
    return draw(_tests(value))


@st.composite
def _tests(draw: DrawFn, value: Value) -> str:
    first, second = (draw(_operands(value.kind)) for _ in range(2))
    sign = draw(st.sampled_from(_COMPARISONS))
    shapes = [f"{value.sql} {sign} {first}"] * 4 + [
        f"{value.sql} IS NULL",
        f"{value.sql} IS NOT NULL",
        f"({value.sql} IS DISTINCT FROM {first})",
    ]
    if value.kind != "bool":
        shapes += [
            f"{value.sql} BETWEEN {first} AND {second}",
            f"{value.sql} IN ({first}, {second}, {draw(st.sampled_from(LITERALS[value.kind]))})",
            f"{value.sql} NOT IN ({draw(st.sampled_from(LITERALS[value.kind]))})",
        ]
    if value.kind == "text":
        pattern = draw(st.sampled_from(_PATTERNS))
        shapes += [f"{value.sql} LIKE '{pattern}'", f"{value.sql} NOT LIKE '{pattern}'"]
    if value.kind == "int":
        shapes += [f"{value.sql} {sign} {draw(_operands('decimal'))}",
                   f"{value.sql} {sign} {draw(_operands('float'))}"]  # fmt: skip
    return draw(st.sampled_from(shapes))
