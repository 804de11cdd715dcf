"""Encoding a million rows of lineitem as JSON, against orjson over Python rows."""

import statistics
import time
from collections.abc import Callable

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from bench import data
from bench.report import Figure
from caraway_serving import formats

_ROWS = 1_000_000
_RUNS = 3


def measure() -> list[Figure]:
    """Encode the same batches both ways, alternately."""
    file = pq.ParquetFile(data.tpch() / "lineitem.parquet")
    table = pa.Table.from_batches(file.iter_batches(batch_size=8192)).slice(0, _ROWS)
    batches = table.to_batches()
    pairs = [(_time(_ours, batches), _time(_orjson, batches)) for _ in range(_RUNS)]
    ours = statistics.median(pair[0] for pair in pairs)
    theirs = statistics.median(pair[1] for pair in pairs)
    ratio = theirs / ours
    return [Figure("JSON of a million rows; orjson over Python rows", f"{ours:.2f} s",
                   f"{theirs:.2f} s", ratio, "≥ 5 times as fast", ratio >= 5)]  # fmt: skip


def _time(encode: Callable[[list[pa.RecordBatch]], int], batches: list[pa.RecordBatch]) -> float:
    started = time.perf_counter()
    encode(batches)
    return time.perf_counter() - started


def _ours(batches: list[pa.RecordBatch]) -> int:
    encoder = formats.make("json")
    size = len(encoder.encode_start(batches[0].schema))
    size += sum(len(encoder.encode(batch)) for batch in batches)
    return size + len(encoder.end(0))


def _orjson(batches: list[pa.RecordBatch]) -> int:
    return sum(len(orjson.dumps(batch.to_pylist(), default=str)) for batch in batches)
