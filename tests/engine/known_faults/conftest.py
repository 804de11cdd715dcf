"""The same tables under the plain engine, one node and two clusters."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext

from tests.differential import asking, cluster_runners, judging, runners
from tests.differential.asking import Runner
from tests.differential.datasets import Dataset
from tests.differential.judging import Judge
from tests.differential.typed import tables as typed_tables
from tests.engine.known_faults import tables
from tests.engine.known_faults.memory import Asked
from tests.kit.clusters import EAGER

RUNNERS = {
    "one-node": runners.single_node,
    "two-by-hash": cluster_runners.in_process(2, EAGER),
    "two-accelerated": cluster_runners.accelerated(2, EAGER),
}
# Both clusters divide stages in the same way; only their sources differ.
PARAMS = [
    pytest.param(name, marks=pytest.mark.full if name == "two-accelerated" else ())
    for name in RUNNERS
]
Ask = Callable[[str], pa.Table]


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return tables.build(tmp_path_factory.mktemp("faulty"))


@pytest.fixture(scope="session")
def asked() -> Asked:
    return Asked()


@pytest.fixture(scope="session")
def plain(faulty: Dataset) -> Ask:
    """Ask the engine itself, with nothing of ours around it."""
    context = SessionContext(SessionConfig().with_target_partitions(2))
    for name in faulty.tables:
        context.register_parquet(name, f"{faulty.folder / name}/")

    for name, view in faulty.views.items():
        context.register_view(name, context.sql(view))

    def ask(sql: str) -> pa.Table:
        frame = context.sql(sql)
        batches = [batch.to_pyarrow() for batch in frame.execute_stream()]
        return (
            pa.Table.from_batches(batches) if batches else pa.schema(frame.schema()).empty_table()
        )

    return ask


@pytest.fixture(scope="session", params=PARAMS)
def runner(request: pytest.FixtureRequest, faulty: Dataset) -> Iterator[Runner]:
    with asking.opened(RUNNERS[request.param], faulty) as opened:
        yield opened


@pytest.fixture(scope="session")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return typed_tables.build(tmp_path_factory.mktemp("typed") / "tables")


@pytest.fixture(scope="session")
def typed_judge(typed: Dataset) -> Iterator[Judge]:
    with judging.judge(typed) as opened:
        yield opened
