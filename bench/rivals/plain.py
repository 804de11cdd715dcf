"""Plain DataFusion with two threads in one process, as a user would script it."""

import sys
from pathlib import Path

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from bench.rivals import answering


def main(folder: Path) -> None:
    pipe = answering.replies()
    context = SessionContext(SessionConfig().with_target_partitions(2))
    for file in folder.glob("*.parquet"):
        context.register_parquet(file.stem, str(file))

    def run(sql: str) -> pa.Table:
        frame = context.sql(sql)
        return pa.Table.from_batches(frame.collect(), schema=frame.schema())

    answering.serve(pipe, run)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
