"""Random join trees over tables with common column names, with functions of keys everywhere.

Every statement has one correct answer, in SQL that DuckDB also understands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.differential import key_expressions as expressions
from tests.differential.expressions import Column, Kind, exact, of_kind
from tests.differential.generated import Query

_TABLES: dict[str, dict[str, Kind]] = {
    "first": {"k": "int", "s": "text", "f": "float", "d": "date", "m": "decimal", "v": "int"},
    "second": {"k": "int", "s": "text", "f": "float", "d": "date", "m": "decimal", "v": "int"},
    "third": {"s": "int", "k": "text", "w": "int", "d": "date"},
    "fourth": {"c0": "text", "s1_c0": "int", "s2_c1": "decimal", "c1": "int"},
    "none": {"k": "int", "s": "text", "d": "date"},
}
_ROWS = {"first": 40, "second": 25, "third": 15, "fourth": 10, "none": 1}
_DRAWN = (*("first", "second") * 3, *("third", "fourth") * 2, "none")
_NAMES = ("k", "s", "v", "c0", "n")
"""The column names of subqueries, whatever they contain."""
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_HALF_JOINS = ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
_MOST_PAIRS = 4_000
"""More row pairs than this are only joined by equal keys."""
_DIRECTIONS = (" NULLS FIRST", " NULLS LAST", " DESC NULLS FIRST", " DESC NULLS LAST")


@dataclass(frozen=True, slots=True)
class Source:
    """An input of FROM, its columns, and its approximate number of rows."""

    sql: str
    columns: tuple[Column, ...]
    rows: float

    def named(self, alias: str) -> "Source":
        columns = tuple(Column(f"{alias}.{each.name}", each.kind) for each in self.columns)
        return Source(f"{self.sql} {alias}", columns, self.rows)


@st.composite
def queries(draw: DrawFn) -> Query:
    """Draw a statement over a tree of two to five inputs."""
    shared = draw(_derived()) if draw(st.integers(0, 3)) == 0 else None
    inputs = [draw(_input(shared)) for _ in range(draw(st.sampled_from((2, 2, 2, 3, 3, 4, 5))))]
    named = [each.named(f"x{n}") for n, each in enumerate(inputs)]
    tree = draw(_tree(named, is_whole=True))
    # In WHERE, the engine treats a common column of USING as ambiguous.
    own = [each for each in tree.columns if "." in each.name]
    conditions = draw(st.lists(_condition(own), max_size=2)) if exact(own) else []
    rest = f"FROM {tree.sql}"
    if conditions:
        words = (" AND ", " AND ", " OR ")[: 2 if any(map(_is_negated, conditions)) else 3]
        rest += f" WHERE {draw(st.sampled_from(words)).join(conditions)}"
    select = draw(draw(st.sampled_from(_SHAPES))(tree, rest))
    text = f"WITH shared AS {shared.sql} {select.sql}" if shared else select.sql
    if draw(st.integers(0, 5)):
        return Query(text)
    order = ", ".join(f"c{n}{draw(st.sampled_from(_DIRECTIONS))}" for n in range(select.width))
    limit = f"SELECT * FROM ({select.sql}) q ORDER BY {order} LIMIT {draw(st.integers(1, 9))}"
    return Query(f"WITH shared AS {shared.sql} {limit}" if shared else limit)


def _is_negated(condition: str) -> bool:
    """Return whether DataFusion 55 evaluates the condition incorrectly below OR with a NULL key."""
    return " NOT IN (SELECT" in condition


@dataclass(frozen=True, slots=True)
class _Select:
    sql: str
    width: int


@st.composite
def _table(draw: DrawFn) -> Source:
    name = draw(st.sampled_from(_DRAWN))
    columns = tuple(Column(each, kind) for each, kind in _TABLES[name].items())
    return Source(name, columns, _ROWS[name])


@st.composite
def _input(draw: DrawFn, shared: Source | None) -> Source:
    if shared and draw(st.booleans()):
        return Source("shared", shared.columns, shared.rows)
    if draw(st.integers(0, 2)):
        return draw(_table())
    return draw(_derived())


def _derived() -> SearchStrategy[Source]:
    return st.sampled_from((_selected, _summed, _united)).flatmap(lambda each: each())


def _as(chosen: Sequence[Column], names: Sequence[str]) -> tuple[str, tuple[Column, ...]]:
    text = ", ".join(f"{a.name} AS {name}" for a, name in zip(chosen, names, strict=False))
    columns = (Column(name, a.kind) for a, name in zip(chosen, names, strict=False))
    return text, tuple(columns)


@st.composite
def _selected(draw: DrawFn) -> Source:
    table = draw(_table()).named("t")
    chosen = draw(st.lists(expressions.expression(table.columns), min_size=1, max_size=4))
    names = draw(st.permutations(_NAMES))
    text, columns = _as(chosen, names)
    verb = draw(st.sampled_from(("SELECT", "SELECT", "SELECT DISTINCT")))
    where = f" WHERE {draw(_condition(table.columns))}" if draw(st.booleans()) else ""
    return Source(f"({verb} {text} FROM {table.sql}{where})", columns, table.rows)


@st.composite
def _summed(draw: DrawFn) -> Source:
    table = draw(_table()).named("t")
    key = draw(expressions.expression(table.columns))
    values = draw(st.lists(_aggregate(table.columns), min_size=1, max_size=2))
    text, columns = _as([key, *values], draw(st.permutations(_NAMES)))
    return Source(f"(SELECT {text} FROM {table.sql} GROUP BY {key.name})", columns, 10)


@st.composite
def _united(draw: DrawFn) -> Source:
    """Draw a UNION of two tables; the columns of the second have other names."""
    first, second = draw(_table()), draw(_table())
    wanted: list[Kind] = ["int", "text", "date"]
    kinds = draw(st.lists(st.sampled_from(wanted), min_size=1, max_size=3))
    sides = []
    for table, names in ((first, _NAMES), (second, tuple(reversed(_NAMES)))):
        chosen = [_of(draw, table.columns, kind) for kind in kinds]
        text, columns = _as(chosen, names)
        sides.append((f"SELECT {text} FROM {table.sql}", columns))
    word = draw(st.sampled_from(("UNION ALL", "UNION ALL", "UNION")))
    return Source(f"({sides[0][0]} {word} {sides[1][0]})", sides[0][1], first.rows + second.rows)


def _of(draw: DrawFn, columns: Sequence[Column], kind: Kind) -> Column:
    found = of_kind(columns, kind)
    return (
        draw(st.sampled_from(found)) if found else Column(f"{expressions.LITERALS[kind][0]}", kind)
    )


@st.composite
def _tree(draw: DrawFn, inputs: Sequence[Source], *, is_whole: bool = False) -> Source:
    """Draw a join tree. Below other joins, the common columns of USING would not be unique."""
    if len(inputs) == 1:
        return inputs[0]
    cut = draw(st.integers(1, len(inputs) - 1)) if draw(st.booleans()) else len(inputs) - 1
    left, right = draw(_tree(inputs[:cut])), draw(_tree(inputs[cut:]))
    columns = (*left.columns, *right.columns)
    nested = f"({right.sql})" if len(inputs) - cut > 1 else right.sql
    pairs = [(a, b) for a in exact(left.columns) for b in exact(right.columns) if a.kind == b.kind]
    is_small = left.rows * right.rows <= _MOST_PAIRS
    if is_small and (not pairs or draw(st.integers(0, 9)) == 0):
        return Source(f"{left.sql} CROSS JOIN {nested}", columns, left.rows * right.rows)
    kind = draw(st.sampled_from((*_JOINS * 2, *_HALF_JOINS)))
    if kind in _HALF_JOINS:
        columns = left.columns
    elif is_whole and len(inputs) == 2 and draw(st.integers(0, 2)) == 0:
        by_name = draw(_by_name(left, kind, right))
        if by_name is not None:
            return by_name
    if not pairs:
        return Source(f"{left.sql} {kind} {nested} ON false", columns, left.rows + right.rows)
    on = draw(_on(pairs, (*left.columns, *right.columns), is_small))
    rows = max(left.rows, right.rows, left.rows * right.rows / (3 if is_small else 8))
    return Source(f"{left.sql} {kind} {nested} ON {on}", columns, rows)


@st.composite
def _by_name(draw: DrawFn, left: Source, kind: str, right: Source) -> Source | None:
    """Join two inputs by their common column names, which become separate columns."""
    ours, theirs = (
        {each.name.partition(".")[2]: each for each in side.columns} for side in (left, right)
    )
    shared = [name for name in ours if name in theirs]
    usable = [name for name in shared if ours[name].kind == theirs[name].kind]
    usable = [name for name in usable if ours[name].is_exact]
    if not usable:
        return None
    is_natural = usable == shared and draw(st.booleans())
    names = (
        usable if is_natural else draw(st.lists(st.sampled_from(usable), min_size=1, unique=True))
    )
    merged = [Column(name, ours[name].kind) for name in names]
    # Their own columns are omitted: DataFusion gives one of them the name of the common one.
    rest = [each for side in (ours, theirs) for name, each in side.items() if name not in names]
    sql = (
        f"{left.sql} NATURAL {kind} {right.sql}"
        if is_natural
        else f"{left.sql} {kind} {right.sql} USING ({', '.join(names)})"
    )
    return Source(sql, (*merged, *rest), max(left.rows, right.rows, left.rows * right.rows / 8))


@st.composite
def _on(
    draw: DrawFn,
    pairs: Sequence[tuple[Column, Column]],
    columns: Sequence[Column],
    is_small: bool,
) -> str:
    terms = []
    for a, b in draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2)):
        left, right = draw(expressions.key(a)), draw(expressions.key(b))
        if not is_small or draw(st.integers(0, 5)):
            terms.append(f"{left} = {right}")
        else:
            terms.append(draw(st.sampled_from((f"{left} < {right}", f"{left} <> {right}"))))
    if draw(st.integers(0, 3)) == 0:
        terms.append(draw(expressions.condition(columns)))
    return " AND ".join(terms)


@st.composite
def _condition(draw: DrawFn, columns: Sequence[Column]) -> str:
    """Draw a WHERE condition, which may contain a subquery over another table."""
    if draw(st.integers(0, 3)):
        return draw(expressions.condition(columns))
    other = draw(_table()).named("u")
    pairs = [(a, b) for a in exact(columns) for b in other.columns if a.kind == b.kind]
    if not pairs:
        return draw(expressions.condition(columns))
    a, b = draw(st.sampled_from(pairs))
    left, right = draw(expressions.key(a)), draw(expressions.key(b))
    return draw(st.sampled_from((
        f"EXISTS (SELECT 1 FROM {other.sql} WHERE {right} = {left})",
        f"NOT EXISTS (SELECT 1 FROM {other.sql} WHERE {right} = {left})",
        f"EXISTS (SELECT 1 FROM {other.sql} WHERE {right} = {left} AND {b.name} > {a.name})",
        f"{left} IN (SELECT {right} FROM {other.sql})",
        f"{left} IN (SELECT {right} FROM {other.sql} WHERE {b.name} IS NOT NULL)",
        f"{left} NOT IN (SELECT {right} FROM {other.sql} WHERE {right} IS NOT NULL)",
        f"{left} NOT IN (SELECT {right} FROM {other.sql})",
        f"{left} >= (SELECT min({right}) FROM {other.sql})",
        f"(SELECT count(*) FROM {other.sql} WHERE {b.name} = {a.name}) < 3",
    )))  # fmt: skip


@st.composite
def _rows(draw: DrawFn, tree: Source, rest: str, verb: str = "SELECT") -> _Select:
    chosen = draw(st.lists(expressions.expression(tree.columns), min_size=1, max_size=4))
    listed = ", ".join(f"{each.name} AS c{n}" for n, each in enumerate(chosen))
    return _Select(f"{verb} {listed} {rest}", len(chosen))


def _distinct(tree: Source, rest: str) -> SearchStrategy[_Select]:
    return _rows(tree, rest, "SELECT DISTINCT")


@st.composite
def _groups(draw: DrawFn, tree: Source, rest: str) -> _Select:
    keys = draw(st.lists(expressions.expression(tree.columns), max_size=2))
    values = draw(st.lists(_aggregate(tree.columns), min_size=1, max_size=3))
    chosen = [*keys, *values]
    listed = ", ".join(f"{each.name} AS c{n}" for n, each in enumerate(chosen))
    if keys:
        rest += f" GROUP BY {', '.join(dict.fromkeys(each.name for each in keys))}"
    if draw(st.integers(0, 2)) == 0:
        rest += f" HAVING {draw(expressions.condition([*keys, *values]))}"
    return _Select(f"SELECT {listed} {rest}", len(chosen))


@st.composite
def _aggregate(draw: DrawFn, columns: Sequence[Column]) -> Column:
    value = draw(expressions.expression(columns))
    choices = [Column("count(*)", "int"), Column(f"count({value.name})", "int"),
               Column(f"min({value.name})", value.kind), Column(f"max({value.name})", value.kind),
               Column(f"count(DISTINCT {value.name})", "int")]  # fmt: skip
    if value.kind in ("int", "decimal"):
        choices.append(Column(f"sum({value.name})", value.kind))
    return draw(st.sampled_from(choices))


_SHAPES: tuple[Callable[[Source, str], SearchStrategy[_Select]], ...] = (
    _rows, _rows, _distinct, _groups, _groups,
)  # fmt: skip
