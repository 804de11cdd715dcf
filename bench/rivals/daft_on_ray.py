"""Daft on a Ray node with two CPUs."""

import sys
from pathlib import Path

import pyarrow as pa

from bench.rivals import answering


def main(folder: Path) -> None:
    pipe = answering.replies()
    import daft  # These print, and start what prints.
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    daft.set_runner_ray(noop_if_initialized=True)
    tables = {file.stem: daft.read_parquet(str(file)) for file in folder.glob("*.parquet")}

    def run(sql: str) -> pa.Table:
        return daft.sql(sql, **tables).to_arrow()

    answering.serve(pipe, run)
    ray.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
