"""Random UNIONs of outer joins, over datasets that executors divide, copy or hold in memory.

Every statement has one correct answer, in SQL that DuckDB also understands.
"""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

_JOINS = ("LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "first": {"int": ("k", "v"), "text": ("s",), "date": ("d",)},
    "second": {"int": ("k", "v"), "text": ("s",), "date": ("d",)},
    "again": {"int": ("k", "v"), "text": ("s",), "date": ("d",)},
    "third": {"int": ("s", "w"), "text": ("k",), "date": ("d",)},
    "visits": {"int": ("i",), "text": ("s",), "date": ("NULL::DATE",)},
    "none": {"int": ("k",), "text": ("s",), "date": ("d",)},
}
"""The columns of each table by kind; the same names mean different things in some."""
_KEYS = {"int": ("{} % 7", "{}"), "text": ("upper({})", "{}"), "date": ("{}",)}
_WHERE = ("", "", "{a} IS NULL", "{b} IS NOT NULL", "{a} IS NOT DISTINCT FROM {b}")


@dataclass(frozen=True, slots=True)
class _Side:
    table: str
    alias: str

    def column(self, draw: DrawFn, kind: str) -> str:
        name = draw(st.sampled_from(_COLUMNS[self.table][kind]))
        return name if "::" in name else f"{self.alias}.{name}"


@st.composite
def unions(draw: DrawFn) -> str:
    """Draw a UNION of two to four branches, which may be grouped or sorted as a whole."""
    kinds = draw(st.lists(st.sampled_from(("int", "text", "date")), min_size=1, max_size=3))
    text = draw(_branch(kinds))
    for _ in range(draw(st.integers(1, 3))):
        text += f" {draw(st.sampled_from(('UNION ALL', 'UNION ALL', 'UNION')))} "
        text += draw(_branch(kinds))
    shape = draw(st.integers(0, 3))
    if shape == 0:
        return f"SELECT c0, count(*) AS n FROM ({text}) u GROUP BY c0"
    if shape == 1:
        order = ", ".join(f"c{n} NULLS LAST" for n in range(len(kinds)))
        return f"SELECT * FROM ({text}) u ORDER BY {order} LIMIT {draw(st.integers(1, 40))}"
    return text


@st.composite
def _branch(draw: DrawFn, kinds: list[str]) -> str:
    sides = [_Side(draw(st.sampled_from(sorted(_COLUMNS))), f"t{n}") for n in range(2)]
    if draw(st.booleans()):
        sides.append(_Side(draw(st.sampled_from(sorted(_COLUMNS))), "t2"))
    source = f"{sides[0].table} t0"
    for number in range(1, len(sides)):
        left = draw(st.sampled_from(sides[:number]))
        kind = draw(st.sampled_from(("int", "text")))
        key = draw(st.sampled_from(_KEYS[kind]))
        a, b = left.column(draw, kind), sides[number].column(draw, kind)
        source += f" {draw(st.sampled_from(_JOINS))} {sides[number].table} {sides[number].alias}"
        source += f" ON {key.format(a)} = {key.format(b)}"
    chosen = []
    for number, kind in enumerate(kinds):
        a, b = (draw(st.sampled_from(sides)).column(draw, kind) for _ in range(2))
        value = draw(st.sampled_from((a, f"coalesce({a}, {b})", f"greatest({a}, {b})")))
        # Tables have integers of several sizes, and branches must have one type.
        chosen.append(
            f"CAST({value} AS BIGINT) AS c{number}" if kind == "int" else f"{value} AS c{number}"
        )
    kind = draw(st.sampled_from(("int", "text")))
    a, b = sides[0].column(draw, kind), sides[-1].column(draw, kind)
    where = draw(st.sampled_from(_WHERE)).format(a=a, b=b)
    return f"SELECT {', '.join(chosen)} FROM {source}" + (f" WHERE {where}" if where else "")
