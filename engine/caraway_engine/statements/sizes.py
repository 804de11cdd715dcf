"""The size of a statement, and the state of measuring it: values only."""

from dataclasses import dataclass, field

LIGHT = 2
"""The most tables of a light view: a short text cannot name it often enough to be too large."""
_LIGHT_OPERATORS = 10
_LIGHT_BYTES = 10_000


@dataclass(slots=True)
class Size:
    """The amounts that a statement contains; for chains, the longest one."""

    tables: int = 0
    joined: int = 0
    branches: int = 0
    operators: int = 0
    text_bytes: int = 0
    literal_bytes: int = 0
    name_bytes: int = 0
    nesting: int = 0
    logical_chain: int = 0
    arithmetic_chain: int = 0
    computing_chain: int = 0
    entries: int = 0
    arguments: int = 0
    columns: int = 0
    grouping_sets: int = 1
    windows: int = 0

    @property
    def is_light(self) -> bool:
        """True if a short text cannot name this view often enough to become large."""
        return (
            max(self.tables, self.joined) <= LIGHT
            and self.branches <= LIGHT
            and self.operators <= LIGHT * _LIGHT_OPERATORS
            and self.text_bytes <= _LIGHT_BYTES
        )

    def read(self, other: "Size") -> None:
        """Add a relation, which is planned again each time it is read."""
        self.tables += other.tables
        self.branches += other.branches
        self.operators += other.operators
        self.text_bytes += other.text_bytes


@dataclass(slots=True)
class Frame:
    """The part of a text inside parentheses or CASE, or the whole text."""

    before: str = ""
    """The word before the parenthesis."""
    cte: str = ""
    is_case: bool = False
    is_relation: bool = False
    is_query: bool = False
    is_values: bool = False
    in_from: bool = False
    expects_table: bool = False
    level: int = 0
    """The parser's depth at the start."""
    pending: list[int] = field(default_factory=list)
    """The precedences of operators whose right operand is being read."""
    logical: int = 0
    arithmetic: int = 0
    computing: int = 0
    items: int = 1
    joined: int = 0
    """The tables of the current SELECT; `most_joined` is the largest number so far."""
    most_joined: int = 0
    with_: str = ""
    """The next expected part of a WITH: a name, `as`, or a body."""
    name: str = ""
    sets: int = 1

    longest_logical: int = 0
    longest_arithmetic: int = 0
    longest_computing: int = 0

    def next_select(self) -> None:
        """Start the next SELECT of a set operation."""
        self.most_joined = max(self.most_joined, self.joined)
        self.joined = 0
        self.sets = 1

    def next_expression(self) -> None:
        """Start another expression; adjacent expressions form no chain."""
        self.longest_logical = max(self.longest_logical, self.logical)
        self.longest_computing = max(self.longest_computing, self.computing)
        self.longest_arithmetic = max(self.longest_arithmetic, self.arithmetic)
        self.logical = self.arithmetic = self.computing = 0
        self.pending.clear()


@dataclass(slots=True)
class StatementScope:
    """A CTE or the statement itself, with the CTEs that are defined in it."""

    size: Size = field(default_factory=Size)
    known: dict[str, Size] = field(default_factory=dict)
