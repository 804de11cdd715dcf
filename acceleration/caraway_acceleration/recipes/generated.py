"""Writes the columns that loads generate: vectors of texts, and the places of chunks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import Chunking, EmbeddedColumn
from caraway_scheduler.catalog.states import source_of

_MARK = re.compile(r"'embedding-[0-9a-f]{16}'")


@dataclass(frozen=True, slots=True)
class GeneratedVectors:
    """The vectors of one text column. `mark` stands for the identity of the model."""

    column: str
    vector_column: str
    offset_column: str
    model: str
    mark: str
    chunking: Chunking | None = None

    @classmethod
    def from_column(cls, embedded: EmbeddedColumn, mark: str) -> "GeneratedVectors":
        return cls(
            embedded.column,
            embedded.vector_column,
            embedded.offset_column,
            embedded.embedder,
            mark,
            embedded.chunking,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the generated columns."""
        if self.chunking is None:
            return (self.vector_column,)
        return self.vector_column, self.offset_column

    def vectors(self, text: str) -> str:
        """Return the expression for the vectors of a text."""
        model = f"{_text(self.model)}, '{self.mark}'"
        if self.chunking is None:
            return f"caraway_stored_vector({text}, {model})"
        return f"caraway_stored_chunks({text}, {model}, {_sizes(self.chunking)})"

    def offsets(self, text: str) -> str | None:
        """Return the expression for the places of the chunks, if the text is cut."""
        if self.chunking is None:
            return None
        return f"caraway_chunk_offsets({text}, {_sizes(self.chunking)})"


def with_vectors(sql: str, vectors: Sequence[GeneratedVectors], old: str | None = None) -> str:
    """Add the generated columns to a query.

    `old` is a table with the same generated columns, whose vectors are taken for equal texts.
    """
    if not vectors:
        return sql
    selected, joins = [], []
    for number, each in enumerate(vectors):
        text, column = f"fresh.{_name(each.column)}", _name(each.vector_column)
        if old is None:
            selected.append(f"{each.vectors(text)} AS {column}")
        else:
            known = f"old_{number}"
            # NULL is not embedded, so no model is asked for a text that is known.
            unknown = f"CASE WHEN {known}.v IS NULL THEN {text} END"
            selected.append(f"coalesce({known}.v, {each.vectors(unknown)}) AS {column}")
            joins.append(f" LEFT JOIN ({_known(each, old)}) AS {known} ON {text} = {known}.t")
        if (offsets := each.offsets(text)) is not None:
            selected.append(f"{offsets} AS {_name(each.offset_column)}")
    return f"SELECT fresh.*, {', '.join(selected)} FROM ({sql}) AS fresh{''.join(joins)}"


def is_outdated(sql: str, vectors: Sequence[GeneratedVectors]) -> bool:
    """Return whether the statement that made a version used another model.

    Statements that only rewrote rows do not say.
    """
    found = set(_MARK.findall(sql))
    return bool(found) and not found >= {f"'{each.mark}'" for each in vectors}


def made_by(vectors: Sequence[GeneratedVectors]) -> str:
    """Return a note of the models that made vectors, for rows that no statement loads."""
    return "-- vectors by " + ", ".join(sorted({f"'{each.mark}'" for each in vectors}))


def says_models(sql: str) -> bool:
    """Return whether a statement or a note says which models made vectors."""
    return _MARK.search(sql) is not None


def made_again(name: str, loaded: pa.Schema, vectors: Sequence[GeneratedVectors]) -> str:
    """Return the query for the rows of a table, whose vectors are made by the present models."""
    made = {column for each in vectors for column in each.columns}
    others = ", ".join(_name(column) for column in loaded.names if column not in made)
    rows = f"SELECT {others} FROM {name}"
    columns = ", ".join(map(_name, loaded.names))
    return f"SELECT {columns} FROM ({with_vectors(rows, vectors)})"


def checked(
    name: TableName, source: pa.Schema, embedded: Sequence[EmbeddedColumn]
) -> list[EmbeddedColumn]:
    """Return the columns whose vectors must be generated, because the source does not have them.

    Raises:
        DatasetError: a column is missing or no text, or the vectors of the source are none.
    """
    wanted = []
    for each in embedded:
        if each.column not in source.names:
            known = ", ".join(source.names)
            raise DatasetError(
                "schema",
                f"dataset '{name}': its `columns` embed column '{each.column}', which its source "
                f"does not have; columns are: {known}",
            )
        kind = source.field(each.column).type
        if not _is_text(kind):
            raise DatasetError(
                "schema",
                f"dataset '{name}': column '{each.column}' is {kind}, and only text can be "
                "embedded; remove its `embeddings`",
            )
        if each.vector_column not in source.names:
            wanted.append(each)
            continue
        kind = source.field(each.vector_column).type
        if not _is_vector(kind, is_chunked=each.chunking is not None):
            what = "a list of lists" if each.chunking is not None else "a list"
            raise DatasetError(
                "schema",
                f"dataset '{name}': column '{each.vector_column}' of its source is {kind}, but "
                f"the vectors of '{each.column}' are {what} of floats; rename or leave it out",
            )
    return wanted


def length_query(name: TableName, each: EmbeddedColumn) -> str:
    """Return the query for the length of the first vector of the source."""
    column = _name(each.vector_column)
    first = f"{column}[1]" if each.chunking is not None else column
    source = ".".join(map(_name, source_of(name).split(".")))
    return f"SELECT array_length({first}) FROM {source} WHERE {first} IS NOT NULL LIMIT 1"


def check_length(name: TableName, each: EmbeddedColumn, found: int, expected: int) -> None:
    """Check the length of a vector.

    Raises:
        DatasetError: it is not that of the model.
    """
    if found != expected:
        raise DatasetError(
            "schema",
            f"dataset '{name}': the vectors of column '{each.vector_column}' of its source have "
            f"{found} dimensions, but those of the embedding model '{each.embedder}' have "
            f"{expected}; name the model that made them",
        )


def _known(each: GeneratedVectors, old: str) -> str:
    text, vector = _name(each.column), _name(each.vector_column)
    rows = (
        f"SELECT {text} AS t, {vector} AS v, "
        f"row_number() OVER (PARTITION BY {text} ORDER BY {text}) AS n "
        f"FROM {old} WHERE {vector} IS NOT NULL"
    )
    return f"SELECT t, v FROM ({rows}) AS numbered WHERE n = 1"


def _sizes(chunking: Chunking) -> str:
    trims = "true" if chunking.trims_whitespace else "false"
    return f"{chunking.target_size}, {chunking.overlap_size}, {trims}"


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_vector(kind: pa.DataType, *, is_chunked: bool) -> bool:
    types = pa.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    inner = kind.value_type
    return _is_vector(inner, is_chunked=False) if is_chunked else bool(types.is_floating(inner))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
