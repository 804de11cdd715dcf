"""Random statements that trigger a remedy, and whose names mean several things.

An alias may be the name of another column, or of its own; two may be swapped; a CTE and a derived
table may have the name of the table that they read. All rows are in a total order, and a bare name
or a position is the only kind of key, because DuckDB reads names inside sort keys differently.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.engine.known_faults.name_triggers import OF_T, Trigger

NEW_NAMES = ("total", "part", "Other name")
"""Names of output columns which no column of a table has over which HAVING is drawn."""


@st.composite
def statements(draw: DrawFn, trigger: Trigger) -> str:
    """Draw a statement, in one of the shapes that the trigger has."""
    shape = draw(st.sampled_from(trigger.shapes))
    if shape == "set":
        return draw(_set(trigger))
    if shape == "nested":
        return draw(_nested(trigger))
    return draw(_ordered(draw(_select(trigger, shape)), _MOST_ITEMS))


@st.composite
def filtered_groups(draw: DrawFn, trigger: Trigger) -> tuple[str, str]:
    """Draw a statement with a name in HAVING, and one that says what the name means.

    It is the column of the table, or the output column if the table has none of that name.
    """
    keys = draw(st.lists(st.sampled_from(trigger.columns[:2]), min_size=1, max_size=2, unique=True))
    aggregates = draw(
        st.lists(st.sampled_from(trigger.aggregates), min_size=1, max_size=2, unique=True)
    )
    items = draw(st.permutations([*keys, *aggregates]))
    pool = [*trigger.columns, *NEW_NAMES]
    count = len(items)
    names = draw(st.lists(st.sampled_from(pool), min_size=count, max_size=count, unique=True))
    meanings = {name: item for item, name in zip(items, names, strict=True)}
    meanings |= {key: f"{trigger.table}.{key}" for key in trigger.columns}
    usable = [each for each in meanings if each in keys or each not in trigger.columns]
    name = draw(st.sampled_from(usable))
    condition = draw(st.sampled_from(("{} > 2", "NOT {} <= 2", "{} IS NULL", "{} IN (1, 2, 3)")))
    always = f" WHERE {trigger.always}" if trigger.always else ""
    head = f"SELECT {_listed(items, names)} FROM {trigger.table}{always} GROUP BY {', '.join(keys)}"
    rest = "ORDER BY " + ", ".join(str(each + 1) for each in range(count))
    written, meant = condition.format(_quoted(name)), condition.format(meanings[name])
    return f"{head} HAVING {written} {rest}", f"{head} HAVING {meant} {rest}"


def probes(trigger: Trigger) -> Iterator[str]:
    """Yield statements for DuckDB that show each part of the trigger over each of its sources."""
    where = f" WHERE {trigger.always}" if trigger.always else ""
    sources = [f"{trigger.from_ or trigger.table}{where}"]
    if "nested" in trigger.shapes:
        sources += [f"({inner}) AS {trigger.table}" for inner in _inner(trigger)]
    for source in sources:
        for value in (*trigger.values, *trigger.conditions):
            yield f"SELECT {', '.join(trigger.columns)}, {value} FROM {source} ORDER BY ALL"
        for aggregate in trigger.aggregates:
            for key in trigger.columns[:2]:
                yield f"SELECT {key}, {aggregate} FROM {source} GROUP BY {key} ORDER BY ALL"


_MOST_ITEMS = 3
_SETS = ("UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")


@dataclass(frozen=True, slots=True)
class _Select:
    sql: str
    names: tuple[str, ...]


@st.composite
def _select(draw: DrawFn, trigger: Trigger, shape: str, from_: str = "") -> _Select:
    source = from_ or trigger.from_ or trigger.table
    conditions = [trigger.always] if trigger.always else []
    if trigger.conditions and not (trigger.always and "WINDOW" in trigger.always):
        chosen = draw(st.lists(st.sampled_from(trigger.conditions), max_size=2, unique=True))
        conditions = [*(f"({each})" for each in chosen), *conditions]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if shape == "grouped":
        return draw(_grouped(trigger, f" FROM {source}{where}"))
    values = (*trigger.columns, *trigger.values, *trigger.values)
    items = draw(st.lists(st.sampled_from(values), min_size=2, max_size=_MOST_ITEMS, unique=True))
    names = draw(_names(trigger, items))
    verb = "SELECT DISTINCT" if shape == "distinct" else "SELECT"
    return _Select(f"{verb} {_listed(items, names)}{f' FROM {source}{where}'}", tuple(names))


@st.composite
def _grouped(draw: DrawFn, trigger: Trigger, rest: str) -> _Select:
    keys = draw(st.lists(st.sampled_from(trigger.columns[:2]), min_size=1, max_size=2, unique=True))
    aggregates = draw(
        st.lists(st.sampled_from(trigger.aggregates), min_size=1, max_size=2, unique=True)
    )
    items = draw(st.permutations([*keys, *aggregates]))
    names = draw(_names(trigger, items))
    grouping = draw(st.sampled_from(trigger.groupings))
    is_placed = grouping == "{}" and draw(st.booleans())
    by = [str(items.index(key) + 1) if is_placed else key for key in keys]
    having = draw(st.sampled_from(("", "", f" HAVING {aggregates[0]} IS NOT NULL")))
    grouped = f" GROUP BY {grouping.format(', '.join(by))}{having}"
    return _Select(f"SELECT {_listed(items, names)}{rest}{grouped}", tuple(names))


@st.composite
def _names(draw: DrawFn, trigger: Trigger, items: Sequence[str]) -> list[str]:
    """Draw the names of output columns: those of other columns, their own, or new ones."""
    pool = [*trigger.columns, *trigger.columns, "x", "Other name"]
    names = draw(
        st.lists(st.sampled_from(pool), min_size=len(items), max_size=len(items), unique=True)
    )
    # Sometimes a column has no alias, if no other column has its name.
    return [
        "" if item in trigger.columns and item not in names and draw(st.booleans()) else name
        for item, name in zip(items, names, strict=True)
    ]


def _listed(items: Sequence[str], names: Sequence[str]) -> str:
    pairs = zip(items, names, strict=True)
    return ", ".join(f"{item} AS {_quoted(name)}" if name else item for item, name in pairs)


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name or name in ("g", "k") else name


@st.composite
def _ordered(draw: DrawFn, select: _Select, most: int) -> str:
    """Sort by names and positions, then by all columns, and keep the first rows."""
    count = len(select.names)
    place = draw(st.integers(1, count))
    name = select.names[place - 1]
    key = _quoted(name) if name and draw(st.integers(0, 3)) else str(place)
    direction = draw(st.sampled_from(("", " DESC", " NULLS FIRST", " DESC NULLS LAST")))
    rest = ", ".join(str(each + 1) for each in range(count))
    limit = draw(st.sampled_from(("", f" LIMIT {most}", " LIMIT 2", " LIMIT 2 OFFSET 1")))
    return f"{select.sql} ORDER BY {key}{direction}, {rest}{limit}"


@st.composite
def _set(draw: DrawFn, trigger: Trigger) -> str:
    """Combine two SELECTs of the same columns, in which other conditions hold."""
    shape = draw(st.sampled_from(("plain", "grouped") if trigger.aggregates else ("plain",)))
    left = draw(_select(trigger, shape))
    right = left.sql if draw(st.booleans()) else f"SELECT * FROM ({left.sql}) AS {trigger.table}"
    word = draw(st.sampled_from(_SETS))
    return draw(_ordered(_Select(f"{left.sql} {word} {right}", left.names), 4))


@st.composite
def _nested(draw: DrawFn, trigger: Trigger) -> str:
    """Read a SELECT whose columns have swapped names, under the name of its own table."""
    inner = draw(st.sampled_from(_inner(trigger)))
    shape = draw(st.sampled_from(("plain", "grouped") if trigger.aggregates else ("plain",)))
    free = Trigger(
        trigger.table, trigger.columns, trigger.values, trigger.conditions, trigger.aggregates
    )
    if draw(st.booleans()):
        outer = draw(_ordered(draw(_select(free, shape)), _MOST_ITEMS))
        return f"WITH {trigger.table} AS ({inner}) {outer}"
    from_ = f"({inner}) AS {trigger.table}"
    return draw(_ordered(draw(_select(free, shape, from_)), _MOST_ITEMS))


def _inner(trigger: Trigger) -> Sequence[str]:
    """Return SELECTs of all columns, under their own names and under those of the next ones."""
    source = trigger.from_ or trigger.table
    rest = f" FROM {source}" + (f" WHERE {trigger.always}" if trigger.always else "")
    if not _may_swap(trigger):
        return (f"SELECT *{rest}",)
    first, *others = trigger.columns
    names = (trigger.columns, (*others, first))
    return tuple(f"SELECT {_listed(trigger.columns, each)}{rest}" for each in names)


def _may_swap(trigger: Trigger) -> bool:
    """Return whether all columns have one kind, so that each may stand for another."""
    return trigger.columns == OF_T
