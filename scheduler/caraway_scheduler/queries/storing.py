"""Runs a statement whose rows are stored where they are made."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import Dispatch, Statement
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import StoredChunk, answer_schema, in_order, unpack


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer in the result store: its schema, and its chunks in the order of its rows."""

    schema: pa.Schema
    chunks: tuple[ChunkInfo, ...]


OnWord = Callable[[list[StoredChunk]], None]


async def store(
    dispatch: Dispatch,
    query_id: QueryId,
    statement: Statement,
    on_word: OnWord,
    on_written: Callable[[], None] = lambda: None,
) -> StoredAnswer:
    """Run it to its end; `on_word` is given all words so far, none at first, as they come.

    `on_written` is called at the end of a statement that writes, however it ends.

    Raises:
        QueryError: it failed; what it stored stays under its key.
    """
    words: list[StoredChunk] = []
    stream = await dispatch.execute(query_id, statement)
    try:
        schema = answer_schema(stream.schema)
        on_word(words)
        async for batch in stream:
            words.extend(unpack(batch))
            on_word(words)
    finally:
        await stream.aclose()
        if stream.written is not None:
            on_written()
    return StoredAnswer(schema, tuple(in_order(words)))
