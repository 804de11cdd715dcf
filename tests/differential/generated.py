"""Random statements over the small tables, each with one correct answer.

Every relation is a SELECT with columns c0, c1, ...; larger ones contain smaller ones in
parentheses. If an answer depends on the order of rows, the order is made total.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.differential import expressions
from tests.differential.expressions import NUMBERS, Column, Kind

_MOST_COLUMNS = 6
_TABLES: dict[str, dict[str, Kind]] = {
    "l": {"k": "int", "s": "text", "v": "int"},
    "r": {"k": "int", "s": "text", "w": "int"},
    "third": {"k": "int", "s": "text"},
    "nothing": {"k": "int", "s": "text", "v": "int"},
    "lone": {"k": "int", "s": "text"},
    "emp": {"id": "int", "name": "text", "dept_id": "int", "salary": "decimal", "bonus": "float",
            "hired": "date", "active": "bool", "grade": "int"},
    "dept": {"id": "int", "name": "text", "budget": "decimal", "opened": "date"},
    "v_active": {"id": "int", "name": "text", "dept_id": "int", "salary": "decimal"},
}  # fmt: skip
_LARGER = ("l", "r", "emp", "dept")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN",
          "RIGHT SEMI JOIN", "RIGHT ANTI JOIN", "CROSS JOIN")  # fmt: skip
_FRAMES = ("", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
           "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
           "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
           "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Relation:
    """A SELECT and its columns, starting with c0.

    `is_single` is set if it may have one row, whose columns the engine treats as constant.
    """

    sql: str
    kinds: tuple[Kind, ...]
    is_single: bool = False

    def columns(self, alias: str = "t") -> list[Column]:
        return [Column(f"{alias}.c{n}", kind) for n, kind in enumerate(self.kinds)]

    def named(self, alias: str = "t") -> str:
        return f"({self.sql}) AS {alias}"


@dataclass(frozen=True, slots=True)
class Query:
    """A statement, the positions of its sort keys, and the whole that it limits, if any."""

    sql: str
    sort_places: tuple[int, ...] = ()
    whole: str | None = None


@st.composite
def queries(draw: DrawFn) -> Query:
    """Draw a statement that may sort and limit its rows."""
    relation = draw(relations(draw(st.integers(1, 4))))
    places = tuple(n for n, column in enumerate(relation.columns()) if column.is_exact)
    if not places or draw(st.booleans()):
        return Query(relation.sql)
    keys = draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True))
    directions = draw(st.tuples(*(st.sampled_from(_DIRECTIONS) for _ in keys)))
    order = ", ".join(f"c{key}{each}" for key, each in zip(keys, directions, strict=True))
    sorted_ = f"SELECT * FROM {relation.named()} ORDER BY {order}"
    if draw(st.booleans()):
        return Query(sorted_, tuple(keys))
    limit, offset = draw(st.integers(0, 12)), draw(st.sampled_from(("", "", " OFFSET 2")))
    return Query(f"{sorted_} LIMIT {limit}{offset}", tuple(keys), relation.sql)


_DIRECTIONS = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST")


def relations(depth: int) -> SearchStrategy[Relation]:
    if depth == 0:
        return tables()
    return st.sampled_from(_STEPS).flatmap(lambda step: step(depth - 1))


@st.composite
def tables(draw: DrawFn) -> Relation:
    name = draw(st.sampled_from((*_TABLES, *_LARGER, *_LARGER)))
    columns = [Column(each, kind) for each, kind in _TABLES[name].items()]
    return _select(columns, f"FROM {name}", is_single=name == "lone")


def _select(
    columns: Sequence[Column], rest: str, *, is_single: bool, verb: str = "SELECT"
) -> Relation:
    chosen = columns[:_MOST_COLUMNS]
    listed = ", ".join(f"{column.name} AS c{n}" for n, column in enumerate(chosen))
    return Relation(f"{verb} {listed} {rest}", tuple(each.kind for each in chosen), is_single)


@st.composite
def _filtered(draw: DrawFn, depth: int) -> Relation:
    inner = draw(relations(depth))
    condition = draw(expressions.condition(inner.columns()))
    rest = f"FROM {inner.named()} WHERE {condition}"
    return _select(inner.columns(), rest, is_single=inner.is_single)


@st.composite
def _projected(draw: DrawFn, depth: int) -> Relation:
    inner = draw(relations(depth))
    chosen = draw(st.lists(expressions.expression(inner.columns()), min_size=1, max_size=4))
    return _select(chosen, f"FROM {inner.named()}", is_single=inner.is_single)


@st.composite
def _joined(draw: DrawFn, depth: int) -> Relation:
    left, right = draw(relations(depth)), draw(relations(min(depth, 1)))
    kind = draw(st.sampled_from([each for each in _JOINS if _may_join(left, each, right)]))
    is_single = left.is_single or right.is_single
    ours, theirs = left.columns("a"), right.columns("b")
    from_ = f"FROM {left.named('a')} {kind} {right.named('b')}"
    if kind != "CROSS JOIN":
        from_ += f" ON {draw(_matching(ours, theirs))}"
    if kind.startswith(("LEFT SEMI", "LEFT ANTI")):
        return _select(ours, from_, is_single=is_single)
    if kind.startswith(("RIGHT SEMI", "RIGHT ANTI")):
        return _select(theirs, from_, is_single=is_single)
    return _select([*ours[:3], *theirs[:3]], from_, is_single=is_single)


def _may_join(left: Relation, kind: str, right: Relation) -> bool:
    """Return whether a join is allowed: DataFusion 55 sorts some joins incorrectly."""
    loses_left, loses_right = (
        kind in ("RIGHT JOIN", "FULL JOIN"),
        kind in ("LEFT JOIN", "FULL JOIN"),
    )
    return not ((loses_left and left.is_single) or (loses_right and right.is_single))


@st.composite
def _matching(draw: DrawFn, ours: Sequence[Column], theirs: Sequence[Column]) -> str:
    """Draw a join condition: equal keys, and sometimes more."""
    pairs = [(a, b) for a in expressions.exact(ours) for b in theirs if a.kind == b.kind]
    if not pairs:
        return draw(expressions.condition([*ours, *theirs], 0))
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2, unique=True))
    operator = draw(st.sampled_from(("=", "=", "=", "IS NOT DISTINCT FROM", "<")))
    terms = [f"({a.name} {'=' if n else operator} {b.name})" for n, (a, b) in enumerate(chosen)]
    if draw(st.integers(0, 3)) == 0:
        terms.append(draw(expressions.condition([*ours, *theirs], 1)))
    return " AND ".join(terms)


@st.composite
def _grouped(draw: DrawFn, depth: int) -> Relation:
    inner = draw(relations(depth))
    usable = expressions.exact(inner.columns())
    keys = draw(st.lists(st.sampled_from(usable), max_size=2, unique=True)) if usable else []
    values = draw(st.lists(_aggregate(inner.columns()), min_size=1, max_size=3))
    by = draw(st.sampled_from(("{}", "{}", "{}", "ROLLUP ({})", "CUBE ({})")))
    rest = f"FROM {inner.named()}"
    if keys:
        rest += " GROUP BY " + by.format(", ".join(key.name for key in keys))
        rest += draw(st.sampled_from(("", "", "", " HAVING count(*) > 1")))
    return _select([*keys, *values], rest, is_single=inner.is_single or not keys)


@st.composite
def _aggregate(draw: DrawFn, columns: Sequence[Column]) -> Column:
    choices = [Column("count(*)", "int")]
    for column in expressions.exact(columns):
        choices += [Column(f"count({column.name})", "int"),
                    Column(f"count(DISTINCT {column.name})", "int"),
                    Column(f"min({column.name})", column.kind),
                    Column(f"max({column.name})", column.kind)]  # fmt: skip
    for column in expressions.of_kind(columns, *NUMBERS):
        choices += [Column(f"sum({column.name})", column.kind),
                    Column(f"avg({column.name})", "inexact"),
                    Column(f"sum(DISTINCT {column.name})", column.kind)]  # fmt: skip
    for column in expressions.of_kind(columns, "bool"):
        choices += [Column(f"bool_or({column.name})", "bool")]
    chosen = draw(st.sampled_from(choices))
    if draw(st.integers(0, 5)):
        return chosen
    condition = draw(expressions.condition(columns, 0))
    return Column(f"{chosen.name} FILTER (WHERE {condition})", chosen.kind)


@st.composite
def _windowed(draw: DrawFn, depth: int) -> Relation:
    inner = draw(relations(depth))
    columns, usable = inner.columns(), expressions.exact(inner.columns())
    if not usable:
        return inner
    parts = draw(st.lists(st.sampled_from(usable), max_size=2, unique=True))
    partition = f"PARTITION BY {', '.join(each.name for each in parts)} " if parts else ""
    is_total = len(usable) == len(columns)
    function = draw(
        _in_total_order(usable, partition) if is_total else _with_ties(usable, partition)
    )
    return _select([function, *columns], f"FROM {inner.named()}", is_single=inner.is_single)


@st.composite
def _in_total_order(draw: DrawFn, columns: Sequence[Column], partition: str) -> Column:
    value = draw(st.sampled_from(list(columns)))
    order = f"ORDER BY {', '.join(column.name for column in columns)}"
    over = f"OVER ({partition}{order})"
    framed = f"OVER ({partition}{order} {draw(st.sampled_from(_FRAMES))})"
    choices = [Column(f"row_number() {over}", "int"), Column(f"ntile(3) {over}", "int"),
               Column(f"lag({value.name}) {over}", value.kind),
               Column(f"lead({value.name}, 2) {over}", value.kind),
               Column(f"first_value({value.name}) {framed}", value.kind),
               Column(f"last_value({value.name}) {framed}", value.kind),
               Column(f"count({value.name}) {framed}", "int")]  # fmt: skip
    return draw(st.sampled_from(choices) | _with_ties(columns, partition))


@st.composite
def _with_ties(draw: DrawFn, columns: Sequence[Column], partition: str) -> Column:
    value, key = (draw(st.sampled_from(list(columns))) for _ in range(2))
    over = f"OVER ({partition}ORDER BY {key.name})"
    choices = [Column(f"rank() {over}", "int"), Column(f"dense_rank() {over}", "int"),
               Column(f"count(*) OVER ({partition})", "int"),
               Column(f"max({value.name}) {over}", value.kind),
               Column(f"cume_dist() {over}", "inexact")]  # fmt: skip
    if value.kind in NUMBERS:
        choices.append(Column(f"sum({value.name}) {over}", value.kind))
    return draw(st.sampled_from(choices))


@st.composite
def _combined(draw: DrawFn, depth: int) -> Relation:
    """Draw a set operation; columns of incompatible kinds are compared as text."""
    left, right = draw(relations(depth)), draw(relations(min(depth, 1)))
    pairs = [
        (a, b)
        for a, b in zip(left.columns(), right.columns("t"), strict=False)
        if a.is_exact and b.is_exact
    ]
    if not pairs:
        return left
    ours, theirs = ([_common(*pair, side) for pair in pairs] for side in (0, 1))
    word = draw(st.sampled_from(("UNION", "INTERSECT", "EXCEPT")))
    word += draw(st.sampled_from(("", " ALL")))
    is_single = left.is_single or right.is_single
    first = _select(ours, f"FROM {left.named()}", is_single=is_single)
    second = _select(theirs, f"FROM {right.named()}", is_single=is_single)
    return Relation(f"{first.sql} {word} {second.sql}", first.kinds, is_single)


def _common(left: Column, right: Column, side: int) -> Column:
    own = (left, right)[side]
    return own if left.kind == right.kind else Column(f"CAST({own.name} AS VARCHAR)", "text")


@st.composite
def _distinct(draw: DrawFn, depth: int) -> Relation:
    inner = draw(relations(depth))
    usable = expressions.exact(inner.columns()) or [Column("1", "int")]
    rest = f"FROM {inner.named()}"
    return _select(usable, rest, is_single=inner.is_single, verb="SELECT DISTINCT")


@st.composite
def _limited(draw: DrawFn, depth: int) -> Relation:
    """Keep the first rows of a total order."""
    inner = draw(relations(depth))
    if len(expressions.exact(inner.columns())) < len(inner.kinds):
        return inner
    order = ", ".join(f"c{n}" for n in range(len(inner.kinds)))
    limit, offset = draw(st.integers(1, 20)), draw(st.integers(0, 2))
    rest = f"FROM {inner.named()} ORDER BY {order} LIMIT {limit} OFFSET {offset}"
    return _select(inner.columns(), rest, is_single=inner.is_single or limit == 1)


@st.composite
def _with_subquery(draw: DrawFn, depth: int) -> Relation:
    inner, other = draw(relations(depth)), draw(relations(min(depth, 1)))
    ours, theirs = expressions.exact(inner.columns()), expressions.exact(other.columns("u"))
    pairs = [(a, b) for a in ours for b in theirs if a.kind == b.kind]
    if not pairs:
        return inner
    a, b = draw(st.sampled_from(pairs))
    rows = f"FROM {other.named('u')}"
    condition = draw(st.sampled_from((
        f"{a.name} IN (SELECT {b.name} {rows})",
        f"{a.name} NOT IN (SELECT {b.name} {rows})",
        f"EXISTS (SELECT 1 {rows} WHERE {b.name} = {a.name})",
        f"NOT EXISTS (SELECT 1 {rows} WHERE {b.name} = {a.name})",
        f"{a.name} = (SELECT max({b.name}) {rows})",
        f"{a.name} <> (SELECT min({b.name}) {rows})",
        f"(SELECT count(*) {rows} WHERE {b.name} = {a.name}) < 2",
        f"{a.name} IN (SELECT {b.name} {rows}) OR {ours[0].name} IS NULL",
    )))  # fmt: skip
    is_single = inner.is_single or " = (SELECT" in condition
    return _select(inner.columns(), f"FROM {inner.named()} WHERE {condition}", is_single=is_single)


_Step = Callable[[int], SearchStrategy[Relation]]
_STEPS: tuple[_Step, ...] = (
    _filtered, _projected, _joined, _joined, _joined, _grouped, _grouped, _windowed, _combined,
    _distinct, _limited, _with_subquery,
)  # fmt: skip
