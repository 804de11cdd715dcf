"""Binds the arguments of calls: names, constants and parameters to typed values."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.sqltext import lexer
from caraway_core.sqltext.searching import (
    MOST_HITS,
    RERANK,
    RRF,
    RRF_K,
    TEXT_SEARCH,
    VECTOR_SEARCH,
    SearchMethod,
)
from caraway_core.sqltext.table_calls import CallArgument, TableCall
from caraway_core.statements import Scalar
from caraway_core.statements.searches import RecencyDecay
from caraway_engine.statements import plan_facts

_METHODS = {VECTOR_SEARCH: SearchMethod.VECTOR, TEXT_SEARCH: SearchMethod.TEXT}
_SEARCH = ("table", "query", "col", "limit", "include_score", "rank_weight")
_ALIASES = {"column": "col", "text": "query"}
_FUSION = (
    "join_key", "k", "limit", "time_column", "recency_decay", "decay_constant",
    "decay_scale_secs", "decay_window_secs",
)  # fmt: skip
_RERANK = ("input", "query", "model", "col", "limit")
_LIKE = {
    VECTOR_SEARCH: "vector_search(docs, 'what to look for')",
    TEXT_SEARCH: "text_search(docs, 'words to look for')",
    RRF: "rrf(vector_search(docs, 'text'), text_search(docs, 'text'))",
    RERANK: "rerank(input => TABLE(SELECT * FROM docs), query => 'text')",
}
_MOST_SEARCHES = 8
_QUERIES = frozenset({"SELECT", "WITH", "VALUES"})
Parameters = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class AskedSearch:
    """A call of vector_search or text_search. Without a text it finds nothing."""

    call: TableCall
    method: SearchMethod
    table: TableName
    text: str | None
    column: str | None
    limit: int
    has_score: bool
    weight: float


@dataclass(frozen=True, slots=True)
class AskedFusion:
    """A call of rrf."""

    call: TableCall
    searches: tuple[AskedSearch, ...]
    key: str | None
    k: float
    limit: int
    decay: RecencyDecay | None


@dataclass(frozen=True, slots=True)
class AskedReranking:
    """A call of rerank; `sql` is the statement whose rows it orders.

    A query that is given may be None, as the text of a search.
    """

    call: TableCall
    sql: str
    has_query: bool
    query: str | None
    model: str | None
    column: str | None
    limit: int


AskedCall = AskedSearch | AskedFusion | AskedReranking


def bound(call: TableCall, parameters: Parameters) -> AskedCall:
    """Bind the arguments of a call.

    Raises:
        InvalidQueryError: one is missing, unknown, of another type or out of bounds.
    """
    if call.function in _METHODS:
        return _search(call, parameters)
    return _fusion(call, parameters) if call.function == RRF else _reranking(call, parameters)


def _search(call: TableCall, parameters: Parameters) -> AskedSearch:
    given = _Given(call, parameters, _SEARCH)
    place = 0
    for argument in given.positional:
        kind = given.kind(argument)
        if place < 2:
            name = _SEARCH[place]
        elif kind == "boolean":
            name = "include_score"
        else:
            name = "limit" if kind == "number" else "col"
        if place >= 2 and _SEARCH.index(name) < place:
            given.fail(argument, f"its `{name}` is not in its place")
        place = _SEARCH.index(name) + 1
        given.take_argument(name, argument)
    return AskedSearch(
        call,
        _METHODS[call.function],
        given.table("table"),
        given.query("query"),
        given.column("col"),
        given.limit("limit"),
        given.boolean("include_score", default=True),
        given.positive("rank_weight", 1.0),
    )


def _fusion(call: TableCall, parameters: Parameters) -> AskedFusion:
    given = _Given(call, parameters, _FUSION)
    calls = [each.call for each in given.positional if each.call is not None]
    if len(calls) < 2 or len(calls) < len(given.positional):
        given.fail(None, "it takes two or more calls of vector_search and text_search")
    if len(calls) > _MOST_SEARCHES:
        given.fail(None, f"it takes at most {_MOST_SEARCHES} searches")
    searches: list[AskedSearch] = []
    for each in calls:
        if each.function not in _METHODS:
            given.fail(
                None, f"it takes calls of vector_search and text_search, not {each.function}"
            )
        searches.append(_search(each, parameters))
    if len({each.table for each in searches}) > 1:
        given.fail(None, "its searches are of different tables; join the searches instead")
    return AskedFusion(
        call,
        tuple(searches),
        given.column("join_key"),
        given.positive("k", RRF_K),
        given.limit("limit"),
        _decay(given),
    )


def _decay(given: "_Given") -> RecencyDecay | None:
    column, kind = given.column("time_column"), given.text("recency_decay")
    if column is None:
        if kind is not None:
            given.fail(None, "`recency_decay` needs a `time_column`")
        return None
    if kind not in (None, "exponential", "linear"):
        given.fail(None, "`recency_decay` must be 'exponential' or 'linear'")
    chosen: Literal["exponential", "linear"] = "linear" if kind == "linear" else "exponential"
    return RecencyDecay(
        column,
        chosen,
        given.positive("decay_constant", 0.01),
        given.positive("decay_scale_secs", 86400.0),
        given.positive("decay_window_secs", 86400.0),
    )


def _reranking(call: TableCall, parameters: Parameters) -> AskedReranking:
    given = _Given(call, parameters, _RERANK)
    for name, argument in zip(_RERANK, given.positional, strict=False):
        given.take_argument(name, argument)
    if len(given.positional) > len(_RERANK):
        given.fail(None, "it has too many arguments")
    return AskedReranking(
        call,
        given.statement("input"),
        given.has("query"),
        given.query("query") if given.has("query") else None,
        given.text("model"),
        given.column("col"),
        given.limit("limit"),
    )


class _Given:
    """The arguments of one call, by name; those that were asked for are checked."""

    def __init__(self, call: TableCall, parameters: Parameters, names: Sequence[str]) -> None:
        self._call = call
        self._parameters = parameters
        self._by_name: dict[str, CallArgument] = {}
        self.positional: list[CallArgument] = []
        for argument in call.arguments:
            if argument.name is None:
                if self._by_name:
                    self.fail(argument, "arguments with a name come last")
                self.positional.append(argument)
                continue
            name = _ALIASES.get(argument.name, argument.name)
            if name not in names:
                self._unknown(argument, argument.name, names)
            self.take_argument(name, argument)

    def take_argument(self, name: str, argument: CallArgument) -> None:
        """Take the argument of a name."""
        if name in self._by_name:
            self.fail(argument, f"its `{name}` is given twice")
        self._by_name[name] = argument

    def kind(self, argument: CallArgument) -> str:
        """Return the kind of an argument, or of the value of its parameter."""
        if argument.kind != "parameter":
            return argument.kind
        value = self._value(argument)
        if value is None or isinstance(value, bool):
            return "null" if value is None else "boolean"
        return "number" if isinstance(value, int | float) else "text"

    def table(self, name: str) -> TableName:
        """Return the name of a table."""
        argument = self._needed(name)
        value = self._value(argument)
        if argument.kind == "parameter":
            self.fail(argument, "the table cannot be a parameter; write its name")
        parts = value if isinstance(value, tuple) else (value,)
        if argument.kind not in ("name", "text") or len(parts) > 3:
            self.fail(argument, "its first argument must be the name of a table")
        padded = [*[None] * (3 - len(parts)), *map(str, parts)]
        return plan_facts.table_name(padded[0], padded[1], str(padded[2]))

    def has(self, name: str) -> bool:
        """Return whether there is an argument of a name."""
        return name in self._by_name

    def query(self, name: str) -> str | None:
        """Return the text to search for.

        A parameter may be NULL: drivers bind it to ask for the columns of an answer.
        """
        argument = self._needed(name)
        value = self._value(argument)
        if value is None and argument.kind == "parameter":
            return None
        if not isinstance(value, str):
            self.fail(
                argument, "the text to search for must be in single quotes, or a parameter such "
                "as $1"
            )  # fmt: skip
        if not value.strip():
            self.fail(argument, "the text to search for is empty")
        return value

    def text(self, name: str) -> str | None:
        """Return a text."""
        argument = self._by_name.get(name)
        value = self._value(argument) if argument else None
        if argument and value is not None and not isinstance(value, str):
            self.fail(argument, f"`{name}` must be a text in single quotes")
        return value if isinstance(value, str) else None

    def column(self, name: str) -> str | None:
        """Return the name of a column, as a name or as a text."""
        argument = self._by_name.get(name)
        value = self._value(argument) if argument else None
        if isinstance(value, tuple) and len(value) == 1:
            return str(value[0])
        if argument and value is not None and not isinstance(value, str):
            self.fail(argument, f"`{name}` must be the name of a column")
        return value if isinstance(value, str) else None

    def limit(self, name: str) -> int:
        """Return a number of rows."""
        argument = self._by_name.get(name)
        value = self._value(argument) if argument else MOST_HITS
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_HITS:
            self.fail(argument, f"`{name}` must be a whole number from 1 to {MOST_HITS:,}")
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        argument = self._by_name.get(name)
        value = self._value(argument) if argument else default
        if not isinstance(value, bool):
            self.fail(argument, f"`{name}` must be true or false")
        return value

    def positive(self, name: str, default: float) -> float:
        """Return a number above 0."""
        argument = self._by_name.get(name)
        value = self._value(argument) if argument else default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # A huge integer has no float.
        if not is_number or not 0 < value <= 1e9 or not math.isfinite(value):  # type: ignore[operator,arg-type]
            self.fail(argument, f"`{name}` must be a number above 0, at most 1e9")
        return float(value)  # type: ignore[arg-type]

    def statement(self, name: str) -> str:
        """Return a query: that of TABLE(...), or one that reads a table or a search."""
        argument = self._needed(name)
        inside = str(argument.value)
        if argument.kind == "call":
            return f"SELECT * FROM {inside}"
        if argument.kind != "query":
            self.fail(argument, f"`{name}` must be TABLE(SELECT ...)")
        is_query = inside.startswith("(") or lexer.first_word(inside) in _QUERIES
        return inside if is_query else f"SELECT * FROM {inside}"

    def fail(self, argument: CallArgument | None, what: str) -> NoReturn:
        """Refuse the call."""
        where = argument.where if argument else self._call.where
        function = self._call.function
        raise InvalidQueryError(f"{where}: {function}: {what}; for example {_LIKE[function]}")

    def _needed(self, name: str) -> CallArgument:
        argument = self._by_name.get(name)
        if argument is None:
            self.fail(None, f"`{name}` is missing")
        return argument

    def _value(self, argument: CallArgument) -> object:
        if argument.kind in ("call", "query"):
            self.fail(argument, "a search or a query cannot stand here")
        if argument.kind != "parameter":
            return argument.value
        value = self._parameters.get(str(argument.value))
        if isinstance(value, ArrowValue):
            return value.scalar.as_py()
        return value

    def _unknown(self, argument: CallArgument, name: str, known: Collection[str]) -> NoReturn:
        self.fail(argument, registry.unknown(f"argument of {self._call.function}", name, known))
