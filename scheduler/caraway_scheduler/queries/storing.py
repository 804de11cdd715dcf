"""Runs a statement whose rows are stored by the executors that produce them."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.ids import QueryId
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import StoredChunk, answer_schema, in_order, unpack
from caraway_core.statements import Statement


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
    """Run a statement to its end and return its stored answer.

    `on_word` is called with all chunks reported so far, first with none. `on_written` is called
    when a statement that writes ends, even if it fails.

    Raises:
        QueryError: the statement failed; chunks that it stored remain under its key.
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
