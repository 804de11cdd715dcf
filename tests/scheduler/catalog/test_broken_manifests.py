"""Random manifests with broken datasets and views: a broken definition affects only itself.

CARAWAY_BROKEN sets how many manifests are drawn for each kind of process.
"""

import asyncio
import os
import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import CarawayError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.files import LocalFiles
from caraway_scheduler.catalog.asking import SourceCalls, UnexpectedError
from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.panics import Panic
from tests.kit.runtime import Running, running

WAIT_S = 60.0
COUNT = int(os.environ.get("CARAWAY_BROKEN", "2"))
WELL = ("good", "fast", "over_good", "over_fast", "over_both")
HEAD = """
datasets:
  - {from: "file:good.csv", name: good}
  - {from: "file:good.csv", name: fast, acceleration: {enabled: true}}
"""
VIEWS = """
views:
  - {name: over_good, sql: SELECT a FROM good}
  - {name: over_fast, sql: SELECT a FROM fast}
  - {name: over_both, sql: SELECT x.a FROM over_good x JOIN over_fast y ON x.a = y.a}
"""
DATASETS = (
    '{{from: "file:missing.csv", name: {name}}}',
    '{{from: "file:missing/", name: {name}, params: {{file_format: parquet}}}}',
    '{{from: "file:garbage.parquet", name: {name}}}',
    '{{from: "file:empty.parquet", name: {name}}}',
    '{{from: "file:good.csv", name: {name}, params: {{file_format: parquet}}}}',
    '{{from: "s3://bucket/x.parquet", name: {name}, params: {{s3_key: "${{env:NOWHERE}}"}}}}',
    '{{from: "file:missing.csv", name: {name}, acceleration: {{enabled: true}}}}',
    '{{from: "file:good.csv", name: {name}, acceleration: '
    '{{enabled: true, refresh_sql: "SELECT nothing FROM {name}"}}}}',
    '{{from: "file:good.csv", name: {name}, acceleration: {{enabled: true, primary_key: b}}}}',
    '{{from: "file:good.csv", name: raises_{name}}}',
    '{{from: "file:good.csv", name: raises_{name}, acceleration: {{enabled: true}}}}',
)
STATEMENTS = (
    "SELECT nothing FROM good",
    "SELECT a FROM nowhere",
    "SELECT no_such_function(a) FROM fast",
    "SELECT a FROM {name}",
    "SELECT a FROM {other}",
    "SELECT x.a FROM good x JOIN {other} y ON x.a = y.a",
    "SELECT * FROM nowhere.at_all.t",
    "SELECT a FROM good WHERE a = (SELECT a FROM {other})",
    "WITH RECURSIVE r AS (SELECT a FROM {other}) SELECT * FROM r",
)


RAISED: Sequence[BaseException] = (
    KeyError("x"), RuntimeError("y"), OSError(5, "z"), AssertionError(), MemoryError(),
    UnicodeDecodeError("utf-8", b"", 0, 1, "bad"), pa.ArrowInvalid("w"), StopIteration(),
    CarawayError("own"), Panic("rust"), SystemExit(3),
    RecursionError(), TimeoutError(), ZeroDivisionError(),
)  # fmt: skip


def drawn(chosen: random.Random) -> tuple[str, list[str], list[str]]:
    """Return a manifest, and the names of its broken datasets and views."""
    datasets, views = [], []
    lines = HEAD
    for number in range(chosen.randint(1, 4)):
        text = chosen.choice(DATASETS).format(name=f"d{number}")
        datasets.append(f"raises_d{number}" if "raises_" in text else f"d{number}")
        lines += f"  - {text}\n"
    lines += VIEWS
    names = [f"v{number}" for number in range(chosen.randint(1, 5))]
    for name in names:
        # A view over a broken one, over one that is defined later, or over itself.
        other = chosen.choice([*datasets, *names])
        sql = chosen.choice(STATEMENTS).format(name=name, other=other)
        views.append(name)
        lines += f'  - {{name: {name}, sql: "{sql}"}}\n'
    return lines, datasets, views


def raising(chosen: random.Random, patch: pytest.MonkeyPatch) -> None:
    resolve = LocalFiles.resolve

    def raises(self: LocalFiles, request: SourceRequest) -> Any:
        if request.name.startswith("raises_"):
            raise chosen.choice(RAISED)
        return resolve(self, request)

    patch.setattr(LocalFiles, "resolve", raises)


def write(folder: Path) -> None:
    (folder / "good.csv").write_text("a\n1\n2\n")
    (folder / "garbage.parquet").write_bytes(b"PAR1 and nothing that is Parquet PAR1")
    (folder / "empty.parquet").touch()


async def check(runtime: Running, datasets: Sequence[str], views: Sequence[str]) -> None:
    """Check that intact tables answer, and that broken ones report an error or their wait."""
    for name in WELL:

        async def is_answered(name: str = name) -> bool:
            answer = await runtime.sql(f"SELECT count(*) AS n FROM {name}")
            return bool(answer.status_code == 200 and answer.json() == [{"n": 2}])

        await eventually(is_answered, f"{name} is answered", WAIT_S)
    catalog = runtime.services.catalog

    async def is_settled() -> bool:
        broken = [catalog.datasets[TableName(name)] for name in datasets]
        return all(each.status in ("error", "initializing") and each.error for each in broken)

    await eventually(is_settled, f"{datasets} say why they are broken", WAIT_S)
    for name in views:
        view = catalog.views[TableName(name)]
        assert view.status in ("error", "initializing"), (name, view)
        assert view.error is not None or view.waits_for, (name, view)
        answer = await runtime.sql(f"SELECT * FROM {name}")
        assert answer.status_code in (400, 503), answer.text
        assert "Traceback" not in answer.text


@pytest.mark.parametrize("seed", range(COUNT))
async def test_a_process_serves_all_that_is_not_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chosen = random.Random(seed)
    manifest, datasets, views = drawn(chosen)
    write(tmp_path)
    raising(chosen, monkeypatch)
    async with asyncio.timeout(3 * WAIT_S), running(tmp_path, manifest) as runtime:
        await check(runtime, datasets, views)


@pytest.mark.parametrize("seed", range(1000, 1000 + COUNT))
async def test_a_cluster_serves_all_that_is_not_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chosen = random.Random(seed)
    manifest, datasets, views = drawn(chosen)
    write(tmp_path)
    raising(chosen, monkeypatch)
    async with asyncio.timeout(3 * WAIT_S), clustered(tmp_path, manifest) as cluster:
        assert await cluster.membership.wait_ready(2, WAIT_S)
        await check(cluster.runtime, datasets, views)
        assert await cluster.membership.wait_ready(2, WAIT_S)


@pytest.mark.parametrize("raised", [StopIteration(), Panic("rust"), SystemExit(3), KeyError("x")])
async def test_any_exception_of_a_source_is_an_error_of_its_dataset(
    tmp_path: Path, raised: BaseException
) -> None:
    """A StopIteration cannot be set on a future: the caller would wait forever."""

    def ask(_request: Any) -> None:
        raise raised

    request: Any = SimpleNamespace(name=TableName("broken"))
    with closing(SourceCalls(tmp_path, 1)) as calls:
        async with asyncio.timeout(60):
            with pytest.raises(UnexpectedError, match="dataset 'broken'"):
                await calls.call(ask, request)
