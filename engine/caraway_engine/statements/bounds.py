"""Refuses statements that are too large to plan, before the engine sees them.

Each bound is where plain DataFusion 55 plans for about two seconds on one core, or needs much
memory; docs/decisions/0031 has the figures. A smaller statement may still be expensive; the limits
of the process that runs it apply then.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import InvalidQueryError
from caraway_engine.statements import measuring
from caraway_engine.statements.sizes import LIGHT, Size

_SHORT = 400
_MEDIUM = 4_000
"""Texts up to this many characters, without the words below, need few of the checks."""
_MULTIPLYING = ("cube", "with", "grouping", "rollup")
_DEEPENING = ("(", "[", "{", "case", "not", "-", "+", "~", "interval", " at ")
_LONG_VALUE = 4_096
_NUMBER_BYTES = 16
_ASTRONOMIC = 10**9


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that a statement may have of one thing, and the message if it has more."""

    most: int
    thing: str
    remedy: str


BOUNDS: Mapping[str, Bound] = {
    "nesting": Bound(
        45,
        "nested levels of parentheses, CASE, subqueries and operators",
        "name inner queries in a WITH, or remove parentheses",
    ),
    "logical_chain": Bound(
        4_000,
        "comparisons, ANDs and ORs in one condition",
        "compare with a list, `x IN (...)`, or join with a table of the values",
    ),
    "arithmetic_chain": Bound(
        100,
        "`+`, `-`, `*`, `/` and `%` in one expression",
        "compute parts of it in a subquery",
    ),
    "computing_chain": Bound(
        500,
        "operators such as `||` and `::` in one expression",
        "compute parts of it in a subquery, or use a function such as concat",
    ),
    "operators": Bound(
        20_000,
        "operators, counting those behind CTEs and views each time they are read",
        "divide the statement, or read a CTE less often",
    ),
    "joined": Bound(
        120,
        "tables in one FROM, counting those of the CTEs and views that it names",
        "join some of them in a refresh of an accelerated view, or divide the statement",
    ),
    "tables": Bound(
        1_000,
        "tables, counting those behind CTEs and views each time they are read",
        "divide the statement, or read a CTE or view less often",
    ),
    "branches": Bound(
        1_000,
        "UNIONs, INTERSECTs and EXCEPTs, counting those behind CTEs and views each time they are "
        "read",
        "put the rows into one VALUES, or divide the statement",
    ),
    "columns": Bound(
        5_000,
        "columns or other items in one list of a query",
        "select fewer columns, or divide the statement",
    ),
    "arguments": Bound(
        20_000,
        "arguments of one call",
        "put the values into a dataset, or send a list as a parameter",
    ),
    "windows": Bound(
        200,
        "window functions",
        "compute some of them in a subquery, or divide the statement",
    ),
    "entries": Bound(
        50_000,
        "values in one list",
        "put the values into a dataset, or send a list as a parameter and use `unnest`",
    ),
    "grouping_sets": Bound(
        4_096,
        "grouping sets, which CUBE doubles with each column",
        "name the sets that are needed in GROUPING SETS",
    ),
    "literal_bytes": Bound(
        1024 * 1024,
        "bytes in one text or value",
        "put long values into a dataset",
    ),
    "name_bytes": Bound(
        10_000,
        "bytes in one name",
        "give it a shorter name with AS",
    ),
    "text_bytes": Bound(
        16 * 1024 * 1024,
        "bytes of texts and values, counting those behind CTEs and views, and each use of a "
        "parameter",
        "put long values into a dataset, or use them less often",
    ),
}


class ViewSizes:
    """The sizes of views, which count in the statements that read them."""

    def __init__(self, known: Mapping[str, Size] = MappingProxyType({})) -> None:
        self.known = dict(known)
        self._heavy: tuple[str, ...] | None = None

    def add(self, name: str, size: Size) -> None:
        """Record the size of a view."""
        self.known[name] = size
        self._heavy = None

    def without(self, names: Collection[str]) -> "ViewSizes":
        """Return the sizes without those of these views."""
        return ViewSizes({name: size for name, size in self.known.items() if name not in names})

    @property
    def heavy(self) -> tuple[str, ...]:
        """The names of views that may make a short text large."""
        if self._heavy is None:
            self._heavy = tuple(
                name.rpartition(".")[2].lower()
                for name, size in self.known.items()
                if not size.is_light
            )
        return self._heavy


_NO_VIEWS = ViewSizes()


def check(
    sql: str, parameters: Mapping[str, object] = MappingProxyType({}), views: ViewSizes = _NO_VIEWS
) -> None:
    """Refuse a statement that is too large to plan; takes microseconds for a small one.

    Raises:
        InvalidQueryError: it is too large; the message names the bound and the remedy.
    """
    long_values = {
        name: size for name, value in parameters.items() if (size := _bytes(value)) > _LONG_VALUE
    }
    if long_values or not _is_small(sql, views):
        measured(sql, long_values, views)


def measured(
    sql: str, long_values: Mapping[str, int] = MappingProxyType({}), views: ViewSizes = _NO_VIEWS
) -> Size:
    """Return the size of a statement that may be planned. Raises the same as `check`."""
    return measuring.measure(sql, views.known, long_values, _refuse_beyond)


def check_nesting(sql: str) -> None:
    """Refuse a text that is nested too deeply for the engine's parser.

    Beyond that depth, parsing time may double with each level.

    Raises:
        InvalidQueryError: it is nested too deeply.
    """
    measuring.measure(sql, {}, {}, lambda size: _refuse(size, "nesting", BOUNDS["nesting"]))


def _refuse_beyond(size: Size) -> None:
    for name, bound in BOUNDS.items():
        _refuse(size, name, bound)


def _refuse(size: Size, name: str, bound: Bound) -> None:
    found = getattr(size, name)
    if found > bound.most:
        raise InvalidQueryError(
            f"the statement has too many {bound.thing}: at most {bound.most:,} are allowed, "
            f"found {_counted(found)} or more; {bound.remedy}"
        )


def _counted(found: int) -> str:
    return f"{found:,}" if found < _ASTRONOMIC else "billions"


def _is_small(sql: str, views: ViewSizes) -> bool:
    words = sql.lower()
    if len(sql) > _MEDIUM or sum(map(words.count, _DEEPENING)) > BOUNDS["nesting"].most // 2:
        return False
    if any(word in words for word in _MULTIPLYING) or any(name in words for name in views.heavy):
        return False
    if len(sql) <= _SHORT:
        return True
    tables = sql.count(",") + words.count("join") + words.count("from")
    computing = sum(map(sql.count, "+-*/%|&^"))
    return tables <= BOUNDS["joined"].most // LIGHT and computing <= BOUNDS["arithmetic_chain"].most


def _bytes(value: object) -> int:
    if isinstance(value, ArrowValue):
        return len(value.ipc)
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    return _NUMBER_BYTES
