"""Adds generated columns to changes: the vectors of their texts, and the places of chunks."""

from collections.abc import Awaitable, Callable, Sequence

import pyarrow as pa

from caraway_core.changes import OP, Changes, Op, log_schema
from caraway_core.manifest import EmbeddedColumn
from caraway_search.cutting import TextCutter

Embed = Callable[[str, Sequence[str]], Awaitable[pa.FixedSizeListArray]]
"""Returns the vectors of texts, by the name of a model."""
_VECTOR = pa.list_(pa.float32())
_OFFSET = pa.list_(pa.int32())
_WITH_ROWS = (Op.INSERT, Op.UPSERT, Op.KEEP)


class ChangedVectors:
    """The generated columns of a dataset whose rows come as changes."""

    def __init__(self, embedded: Sequence[EmbeddedColumn], embed: Embed) -> None:
        self._embedded = tuple(embedded)
        self._embed = embed

    def received(self, schema: pa.Schema, source: pa.Schema) -> pa.Schema:
        """Return the columns of a dataset that changes have: those that are not generated."""
        generated = {field.name for field in self._fields(source)}
        return pa.schema([each for each in schema if each.name not in generated], schema.metadata)

    def stored(self, source: pa.Schema) -> pa.Schema:
        """Return the columns of a source with the generated ones."""
        return pa.schema([*source, *self._fields(source)], source.metadata)

    async def added(self, changes: Changes, source: pa.Schema) -> Changes:
        """Return changes with the generated columns.

        Raises:
            NotFoundError: there is no such model.
            ModelError: a model is not loaded, or a call failed.
        """
        rows, made = changes.rows, {}
        has_row = [op in _WITH_ROWS for op in rows.column(OP).to_pylist()]
        for each in self._generating(source):
            texts = [
                text if has else None
                for text, has in zip(rows.column(each.column).to_pylist(), has_row, strict=True)
            ]
            made.update(await self._columns(each, texts))
        schema = log_schema(self.stored(source))
        columns = [
            made[field.name] if field.name in made else rows.column(field.name) for field in schema
        ]
        return Changes(pa.Table.from_arrays(columns, schema=schema), changes.received)

    async def _columns(
        self, each: EmbeddedColumn, texts: Sequence[str | None]
    ) -> dict[str, pa.Array]:
        if each.chunking is None:
            vectors = await self._vectors(each.embedder, texts)
            return {each.vector_column: vectors}
        sizes = each.chunking
        cutter = TextCutter(sizes.target_size, sizes.overlap_size, sizes.trims_whitespace)
        parts = [None if text is None else cutter.parts(text) for text in texts]
        pieces = [
            text[part.start : part.end]
            for text, found in zip(texts, parts, strict=True)
            if text is not None
            for part in found or ()
        ]
        ends = [0]
        for text_parts in parts:
            ends.append(ends[-1] + len(text_parts or ()))
        inner = await self._vectors(each.embedder, pieces)
        missing = pa.array([found is None for found in parts], pa.bool_())
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), inner, mask=missing)
        offsets = [
            None if found is None else [[part.start, part.end] for part in found] for found in parts
        ]
        return {
            each.vector_column: lists,
            each.offset_column: pa.array(offsets, pa.list_(_OFFSET)),
        }

    async def _vectors(self, model: str, texts: Sequence[str | None]) -> pa.Array:
        places: list[int | None] = [None] * len(texts)
        different: dict[str, int] = {}
        for index, text in enumerate(texts):
            if text and not text.isspace():
                places[index] = different.setdefault(text, len(different))
        if not different:
            return pa.nulls(len(texts), _VECTOR)
        vectors = await self._embed(model, list(different))
        return vectors.cast(_VECTOR).take(pa.array(places, pa.int64()))

    def _generating(self, source: pa.Schema) -> list[EmbeddedColumn]:
        return [each for each in self._embedded if each.vector_column not in source.names]

    def _fields(self, source: pa.Schema) -> list[pa.Field]:
        fields = []
        for each in self._generating(source):
            if each.chunking is None:
                fields.append(pa.field(each.vector_column, _VECTOR))
            else:
                fields.append(pa.field(each.vector_column, pa.list_(_VECTOR)))
                fields.append(pa.field(each.offset_column, pa.list_(_OFFSET)))
        return fields
