"""The order of a statement of a search, so that an index can answer it.

The statement alone means the same: an order may be ignored, and is where there is no index.
"""

from dataclasses import dataclass, field

from caraway_core.ids import TableName


@dataclass(frozen=True, slots=True)
class VectorOrder:
    """Rank rows by the vectors of a column; `vector` is bytes of 32-bit floats.

    `recall` is the part of the nearest rows to find, 1 for all. With `has_parts` the place of the
    best vector of each row follows its score.
    """

    column: str
    vector: bytes = field(repr=False)
    metric: str = "cosine"
    recall: float = 0.98
    has_parts: bool = False


@dataclass(frozen=True, slots=True)
class WordOrder:
    """Rank rows by the words of text columns, with weights.

    `statistics` are those of the whole table, as numbers: what the same order without them returns,
    as one row with one list. They count the rows of the table, whatever `where` is.
    """

    columns: tuple[str, ...]
    text: str
    language: str
    boosts: tuple[float, ...]
    statistics: tuple[int, ...] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class IndexOrder:
    """The best rows of a table: `columns`, then the score, then the place of the best vector.

    `ties` order rows of one score, NULL last. `where` is a predicate in parentheses. The dispatch
    sets `pieces`, the share of an executor; None is the whole table.

    One that `is_required` fails with NotDistributableError where no index answers it. One that
    `is_explained` finds nothing: each executor returns a row that says how its index would answer,
    and if it `is_built`, builds it before. Meanwhile statements answer searches.
    """

    table: TableName
    by: VectorOrder | WordOrder
    columns: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    where: str | None = None
    limit: int = 0
    pieces: tuple[str, ...] | None = None
    is_required: bool = False
    is_explained: bool = False
    is_built: bool = False
