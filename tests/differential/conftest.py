"""Fixtures: the datasets, the reference over each, and every runner over each."""

import logging
from collections.abc import Iterator
from zlib import crc32

import duckdb
import pytest

from caraway_core.tables import FilesTable
from caraway_engine.known_faults import planning
from caraway_engine.stages import Policy
from tests.differential import (
    asking,
    cluster_runners,
    delta_runner,
    duckdb_runner,
    foreign_runners,
    postgres_runner,
    random_orders,
    runners,
    small_tables,
    sqlite_runner,
)
from tests.differential.asking import Pair, Runner
from tests.differential.cluster_runners import WHOLE
from tests.differential.datasets import Dataset
from tests.differential.loading import Case
from tests.differential.runners import Opening
from tests.kit.clusters import EAGER, TINY
from tests.kit.tables import parquet

RUNNERS = {
    **runners.RUNNERS,
    "clickhouse": foreign_runners.RUNNERS["clickhouse"],
    "delta": delta_runner.in_delta,
    "duckdb": duckdb_runner.in_duckdb,
    "postgres": postgres_runner.in_postgres,
    "sqlite": sqlite_runner.in_sqlite,
    "two-over-postgres": postgres_runner.distributed(2, Policy(small_table_bytes=0)),
    "two-in-process": cluster_runners.in_process(2, Policy(small_table_bytes=0)),
    "two-by-hash": cluster_runners.in_process(2, EAGER),
    "two-shuffling": cluster_runners.shuffling(2, EAGER),
    "three-in-process": cluster_runners.in_process(3, TINY),
    "two-accelerated": cluster_runners.accelerated(2, EAGER),
    "three-half-accelerated": cluster_runners.accelerated(3, TINY, every=2),
    "two-real": cluster_runners.real(2),
    "three-real": cluster_runners.real(3),
}
"""Each suite runs once over each of these; in `make test-answers` only over those of `ORDINARY`."""
ORDINARY = frozenset({"postgres", "two-by-hash", "two-accelerated"})
PARAMS = [
    pytest.param(name, marks=() if name in ORDINARY else pytest.mark.full) for name in RUNNERS
]
SHARE = 5
"""One in `SHARE` statements of the corpus is in that share."""
SHORT = frozenset({"test_tpcds.py"})
"""Modules of which they run nothing."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the full run what repeats, over another runner, what `WHOLE` shows.

    `make test` runs a share of the corpus over `WHOLE`, and `make test-answers` the rest.
    """
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        opening, case = params.get("opening", WHOLE), params.get("case")
        is_left_out = isinstance(case, Case) and bool(crc32(case.name.encode()) % SHARE)
        if opening != WHOLE and (is_left_out or item.path.name in SHORT):
            item.add_marker(pytest.mark.full)
        elif opening != WHOLE or is_left_out:
            item.add_marker(pytest.mark.answers)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return small_tables.build(tmp_path_factory.mktemp("differential") / "small")


class _Warnings(logging.Handler):
    """Keeps the statements that a logger warns of."""

    def __init__(self) -> None:
        super().__init__()
        self.statements: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.statements.append(vars(record)["sql"])


@pytest.fixture(scope="session")
def unguarded() -> Iterator[list[str]]:
    """Keep the statements that the reference ran without their guards."""
    handler, logger = _Warnings(), logging.getLogger(planning.__name__)
    logger.addHandler(handler)
    yield handler.statements
    logger.removeHandler(handler)


@pytest.fixture(scope="session")
def small_reference(small: Dataset, unguarded: list[str]) -> Iterator[Runner]:
    with asking.opened(runners.single_node, small) as reference:
        yield reference


@pytest.fixture(scope="module", params=PARAMS)
def opening(request: pytest.FixtureRequest) -> Opening:
    """Return how to open the runner that this module uses now."""
    return RUNNERS[request.param]


@pytest.fixture(scope="module")
def on_small(opening: Opening, small: Dataset, small_reference: Runner) -> Iterator[Pair]:
    with asking.opened(opening, small) as runner:
        yield Pair(small_reference, runner)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FilesTable]:
    """Return the tables of random joins, in files."""
    folder = tmp_path_factory.mktemp("random_orders")
    return {name: parquet(folder / name, each, 2) for name, each in random_orders.tables().items()}


@pytest.fixture(scope="module")
def judge() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a DuckDB over the tables of random joins."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, each in random_orders.tables().items():
            connection.register(name, each)
        yield connection
