"""A runtime that the tests of a module share, with datasets of several kinds."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.runtime import Running, running
from tests.kit.shared_runtime import entered

MANIFEST = """
    datasets:
      - from: 'file:trips/'
        name: trips
        description: All trips.
        columns: [{name: fare, description: In euros.}]
      - {from: 'file:trips/', name: sales.trips}
      - {from: 'file:people.csv', name: people}
      - {from: 'file:odd.parquet', name: odd}
      - {from: 'file:mixed/', name: mixed, columns: [{name: a, type: float64}]}
      - {from: 'file:nowhere.parquet', name: broken}
      - {from: 'file:lost/', name: lost}
      - {from: 'file:trips/', name: quick, acceleration: {enabled: true}}
    views:
      - {name: dear, sql: 'SELECT city, count(*) AS n FROM trips WHERE fare > 2 GROUP BY city'}
      - {name: spans, sql: "SELECT INTERVAL '1 day' AS i"}
"""


def write(folder: Path) -> None:
    """Write the files of the datasets."""
    for city, fares in (("Bern", [1.0, 5.0]), ("New%20York", [3.0])):
        target = folder / "trips" / f"city={city}"
        target.mkdir(parents=True)
        table = pa.table({"id": [hash(city) % 7 + n for n, _ in enumerate(fares)], "fare": fares})
        pq.write_table(table, target / "part.parquet")
    for number, city in enumerate(("Bern", "__HIVE_DEFAULT_PARTITION__"), start=1):
        target = folder / "lost" / f"city={city}"
        target.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), target / "part.parquet")
    (folder / "people.csv").write_text("id,name\n1,Ann\n")
    pq.write_table(pa.table({"a": pa.array([1], pa.uint64())}), folder / "odd.parquet")
    (folder / "mixed").mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "mixed" / "whole.parquet")
    pq.write_table(pa.table({"a": [1.5]}), folder / "mixed" / "broken.parquet")


@asynccontextmanager
async def _serving(folder: Path) -> AsyncIterator[Running]:
    write(folder)
    async with running(folder, MANIFEST) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def runtime(
    loop_of_module: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Serve the datasets until the module ends."""
    folder = tmp_path_factory.mktemp("catalog")
    with entered(loop_of_module, lambda: _serving(folder)) as made:
        yield made
