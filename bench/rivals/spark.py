"""Spark with two threads in one JVM."""

import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from bench.rivals import answering

_SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.maxResultSize": "2g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "true",
    "spark.ui.enabled": "false",
}


def main(folder: Path) -> None:
    pipe = answering.replies()
    from pyspark.sql import SparkSession  # Starts what prints.

    with tempfile.TemporaryDirectory() as scratch:
        builder = SparkSession.builder.master("local[2]")
        places = {"spark.local.dir": scratch, "spark.sql.warehouse.dir": f"{scratch}/warehouse"}
        for name, value in {**_SETTINGS, **places}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        for file in folder.glob("*.parquet"):
            session.read.parquet(str(file)).createOrReplaceTempView(file.stem)

        def run(sql: str) -> pa.Table:
            return session.sql(sql).toArrow()

        answering.serve(pipe, run)
        session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
