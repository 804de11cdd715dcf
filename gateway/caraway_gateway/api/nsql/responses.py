"""The forms of answers: rows with their statement, and one event for clients of a stream."""

import json
import re

import pyarrow as pa

from caraway_core.errors import ResultTooLargeError
from caraway_scheduler.queries.answers import StatementAnswer
from caraway_serving import formats
from caraway_serving.formats import Encoder, Format

_MOST_EVENT_BYTES = 64 * 1024 * 1024


class WithStatement:
    """Encodes rows in the versioned format, with the statement that gave them."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._inner = formats.make("versioned")

    def encode_start(self, schema: pa.Schema) -> bytes:
        """Return the statement, the schema and the start of the rows."""
        head = json.dumps({"sql": self._sql}, ensure_ascii=False).encode()
        return head[:-1] + b"," + self._inner.encode_start(schema)[1:]

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the rows of a batch."""
        return self._inner.encode(batch)

    def end(self, elapsed_ms: int) -> bytes:
        """Return the end of the rows, with their count and the elapsed time."""
        return self._inner.end(elapsed_ms)


def encoder(format_: Format, sql: str) -> Encoder:
    """Return the encoder of an answer."""
    return WithStatement(sql) if format_ == "versioned" else formats.make(format_)


async def whole(answer: StatementAnswer, made: Encoder, elapsed_ms: int) -> bytes:
    """Return a whole answer, which must be small enough for one event.

    Raises:
        ResultTooLargeError: it is not.
    """
    parts = [made.encode_start(answer.rows.schema)]
    size = 0
    try:
        async for batch in answer.rows:
            parts.append(made.encode(batch))
            size += len(parts[-1])
            if size > _MOST_EVENT_BYTES:
                raise ResultTooLargeError(
                    f"the answer has more than {_MOST_EVENT_BYTES} bytes, too much for one event; "
                    "ask without 'stream'"
                )
    finally:
        answer.rows.close()
    parts.append(made.end(elapsed_ms))
    return b"".join(parts)


def event(body: bytes) -> bytes:
    """Return the frame of a body: each line of it is one of the event's data."""
    # A carriage return ends a line of an event, too.
    lines = re.split("\r\n|\r|\n", body.decode().removesuffix("\n"))
    return "".join(f"data: {line}\n" for line in lines).encode() + b"\n"
