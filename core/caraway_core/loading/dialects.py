"""Dialects of SQL: how a database spells an expression, and which of its answers are the engine's.

A dialect is a value, so that a source of another package brings its own. The engine generates SQL
by it, and keeps everything that a dialect does not list.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "bool", "int", "uint", "decimal", "double", "text", "date", "timestamp", "timestamptz", ""
]
"""The kinds of values; `uint` is an integer without a sign. For kind "", only whether it is NULL is
known."""
Operation = Literal[
    "like",
    "add int",
    "subtract int",
    "multiply int",
    "shift int",
    "add decimal",
    "subtract decimal",
    "multiply decimal",
    "cast int",
    "cast decimal",
    "cast double",
    "group",
    "sort",
    "limit",
    "offset",
    "filter",
    "join",
    "outer join",
    "count",
    "count distinct",
    "extreme",
    "sum int",
    "sum uint",
    "sum decimal",
    "sum short decimal",
    "sum double",
    "avg decimal",
    "avg double",
]
"""Operations that may be exact; `filter` is that of one aggregate, `extreme` is min and max, and
`outer join` a join that keeps all rows of one side. A short decimal has at most 18 digits, so that
no sum of them overflows."""


WriteOperation = Literal["case", "concat", "length", "double"]
"""Operations of statements that write: CASE and what it stands for, texts that are joined, the
number of their characters, and arithmetic and comparisons of doubles."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spelling of a database, and the operations that it answers exactly as the engine does.

    Templates have `{}` where the content belongs, and those of literals may have the `{precision}`
    and `{scale}` of a decimal. A literal of a kind without a template is not
    sent, and neither is a cast. The casts are `int8` to `int64`, `uint64`, `decimal`, `double`,
    `float` (a number that is sent as a double), `text`, `texts` (a list), `shift` (the number of
    bits) and `high` (an integer shifted right by 32 bits, with its sign). `smallest` is the least
    integer.
    """

    kinds: frozenset[Kind] = frozenset()
    """Kinds of values that `=`, `<`, `IN`, GROUP BY and ORDER BY treat as the engine does. Doubles
    are compared so that no row is missed, and compared again by the engine."""
    prefiltered: frozenset[Kind] = frozenset()
    """Those of `kinds` whose comparisons are sent so that no row is missed, and compared again by
    the engine, as doubles are. They are not grouped and sorted; texts are tested for equality.
    """
    exact: frozenset[Operation] = frozenset()
    literals: Mapping[str, str] = field(default_factory=dict)
    casts: Mapping[str, str] = field(default_factory=dict)
    quote: str = '"'
    """Around names; doubled inside of them."""
    collation: str = ""
    """The suffix that makes a text compare by its bytes."""
    bytes: str = ""
    """The template of the bytes of a text, by which it is equal to another one, if texts are in
    `prefiltered`; empty: the engine compares them."""
    checked: str = ""
    """The template that fails for a sum or product of integers that overflows; empty: the
    arithmetic fails itself."""
    wide: str = "{}"
    """The template of an integer in a sum or product, so that one that overflows is known."""
    backslash: str = "\\"
    """The form of a backslash in a literal and a name; empty: texts with one are not sent, as
    it may be an escape."""
    apostrophe: str = "''"
    """The form of an apostrophe in a literal; empty: texts with one are not sent."""
    is_nan: str = ""
    """The template of a test for NaN; empty: a column has none."""
    years: tuple[int, int] = (1, 9999)
    """The first and the last year of literals of dates and moments."""
    most_digits: int | None = None
    """The most digits of decimals that meet in one operation; None: any."""
    aligned: str = ""
    """The template of a decimal that meets another one where a statement writes, with the
    `{precision}` and `{scale}` of both; empty: the database finds them."""
    sends_decimals_as_text: bool = False
    has_nulls_order: bool = True
    """ORDER BY has NULLS FIRST and NULLS LAST; otherwise NULLs are sorted by a key of their own."""
    names_answers: bool = False
    """The columns of an answer need names of their own: equal ones are refused or lost."""
    checks_columns: bool = False
    """The reader checks that integers of columns fit their types, so that the database need not."""
    writes: frozenset[WriteOperation] = frozenset()
    """Operations that are exact, or fail, where a statement writes."""
    concat: str = ""
    """The template of two texts that are joined, with `{0}` and `{1}`."""
    length: str = ""
    """The template of the number of characters of a text."""
    fails: str = ""
    """The template of a condition that fails for NaN."""
    no_limit: str = ""
    """A limit that is none, where an offset needs a limit before it."""


ROWS_ALONE = Dialect()
"""The dialect of a database that only sends columns."""
