"""Words searches in SQL: ranked rows of a table by a function of the engine."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from caraway_core.bound_values import ArrowValue
from caraway_core.ids import TableName
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_core.statements import Scalar
from caraway_engine.searching import function_names as functions

types = pa.types


@dataclass(frozen=True, slots=True)
class SearchStatement:
    """A statement, and the values that are bound to its placeholders.

    `index` is what an index could answer instead.
    """

    sql: str
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    index: IndexOrder | None = None


@dataclass(frozen=True, slots=True)
class BestChunk:
    """A column of chunked vectors, for which the place of the best one is returned."""

    column: str
    metric: str

    @property
    def expression(self) -> str:
        """The expression of the place."""
        return f"{functions.BEST_CHUNK}({quoted(self.column)}, $vector, {text(self.metric)})"


@dataclass(frozen=True, slots=True)
class RankedRows:
    """The rows of a table that are ranked.

    `columns` are returned, `ties` order rows of one score, and `where` is a predicate in
    parentheses.
    """

    table: TableName
    columns: tuple[str, ...]
    ties: tuple[str, ...]
    where: str | None
    limit: int

    @property
    def score(self) -> str:
        """A name for the score that no column has."""
        return free_name("score", self.columns)

    @property
    def chunk(self) -> str:
        """A name for the place of the best chunk that no column has."""
        return free_name("chunk", self.columns)

    def statement(
        self, score: str, parameters: Mapping[str, Scalar], chunk: BestChunk | None = None
    ) -> SearchStatement:
        """Return the statement of the best rows by an expression; NULL scores come last.

        With `chunk`, the place of the best chunk of each row follows its score.
        """
        name = quoted(self.score)
        needed = (*self.columns, *self.ties, *([chunk.column] if chunk else []))
        inner = [*map(quoted, dict.fromkeys(needed)), f"{score} AS {name}"]
        order = [f"{name} DESC NULLS LAST", *(f"{quoted(each)} NULLS LAST" for each in self.ties)]
        rows = (
            f"SELECT {', '.join(inner)} FROM {quoted_table(self.table)}{self._where} "
            f"ORDER BY {', '.join(order)} LIMIT {self.limit}"
        )
        outer = [*map(quoted, self.columns), name]
        if chunk is not None:
            outer.append(f"{chunk.expression} AS {quoted(self.chunk)}")
        return SearchStatement(
            f"SELECT {', '.join(outer)} FROM ({rows}) ORDER BY {', '.join(order)}", parameters
        )

    def order(self, by: VectorOrder | WordOrder) -> IndexOrder:
        """Return the order of the best rows, which is that of `statement`."""
        return IndexOrder(self.table, by, self.columns, self.ties, self.where, self.limit)

    @property
    def _where(self) -> str:
        return f" WHERE {self.where}" if self.where else ""


def vector_score(vectors: str, metric: str, *, is_chunked: bool) -> str:
    """Return the expression of the score of vectors, which are an expression, for `$vector`."""
    name = functions.BEST_VECTOR_SCORE if is_chunked else functions.VECTOR_SCORE
    return f"{name}({vectors}, $vector, {text(metric)})"


def embedded(column: str, model: str) -> str:
    """Return the expression of the vectors of texts that have none yet."""
    return f"embed({quoted(column)}, {text(model)})"


def text_score(columns: Iterable[str]) -> str:
    """Return the expression of the score of text columns for `$request`."""
    return f"{functions.TEXT_SCORE}({_texts(columns)}, $request)"


def text_statistics(table: TableName, columns: Iterable[str], request: str) -> SearchStatement:
    """Return the statement of what a request needs to know of a whole table."""
    call = f"{functions.TEXT_STATISTICS}({_texts(columns)}, $request)"
    return SearchStatement(f"SELECT {call} FROM {quoted_table(table)}", {"request": request})


def _texts(columns: Iterable[str]) -> str:
    return f"make_array({', '.join(map(quoted, columns))})"


def packed_vector(vector: Sequence[float]) -> bytes:
    """Return a vector as 32-bit floats."""
    return array("f", vector).tobytes()


@lru_cache(maxsize=256)
def bound_vector(packed: bytes) -> Scalar:
    """Return the value of `$vector`."""
    return ArrowValue.from_array(pa.array([packed], pa.binary()))


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken, whatever its case."""
    names = {each.lower() for each in taken}
    while wanted in names:
        wanted = f"_{wanted}"
    return wanted


def sortable(schema: pa.Schema, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns by which rows can be ordered."""
    return tuple(each for each in columns if not types.is_nested(schema.field(each).type))


def quoted(name: str) -> str:
    """Return a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(table: TableName) -> str:
    """Return the name of a table for SQL."""
    schema, _, bare = table.rpartition(".")
    return f"{quoted(schema or 'public')}.{quoted(bare)}"


def text(value: str) -> str:
    """Return a string of SQL."""
    return "'" + value.replace("'", "''") + "'"
