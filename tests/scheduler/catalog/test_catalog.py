"""Failures of sources, installations and accelerators affect only their dataset."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.statements import CatalogSnapshot
from caraway_gateway.services import Services
from caraway_plugins.sources.files import LocalFiles
from caraway_scheduler.catalog import catalog
from caraway_scheduler.dispatch.wrappers.describing import DescribingDispatch
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch
from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

WAIT_S = 60.0
TWO = """
datasets:
  - {from: "file:good.csv", name: good}
  - {from: "file:bad.csv", name: bad}
"""
ACCELERATED = """
datasets:
  - {from: "file:good.csv", name: good}
  - from: file:good.csv
    name: fast
    acceleration: {enabled: true}
views:
  - {name: quick, sql: SELECT a + 1 AS b FROM fast}
  - {name: quicker, sql: SELECT b FROM quick}
  - {name: broken, sql: SELECT a FROM nowhere}
  - {name: lost, sql: SELECT a FROM gone}
  - {name: left, sql: SELECT a FROM right}
  - {name: right, sql: SELECT a FROM left}
"""
GONE = ACCELERATED.replace("datasets:\n", 'datasets:\n  - {from: "file:gone.csv", name: gone}\n')


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.csv").write_text("a\n1\n")
    (tmp_path / "bad.csv").write_text("a\n2\n")
    monkeypatch.setattr(catalog, "_DELAYS", Delays(0.05, 0.05))


async def ready(runtime: Running, name: str) -> None:
    async def look() -> bool:
        return runtime.services.catalog.datasets[TableName(name)].status == "ready"

    await eventually(look, f"{name} is ready", WAIT_S)


async def views(runtime: Running, **wanted: str) -> None:
    async def look() -> bool:
        states = runtime.services.catalog.views
        return {name: states[TableName(name)].status for name in wanted} == wanted

    await eventually(look, str(wanted), WAIT_S)


async def test_a_source_that_raises_anything_is_an_error_of_its_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    resolve, fails = LocalFiles.resolve, True

    def raises(self: LocalFiles, request: SourceRequest) -> Any:
        if request.name == "bad" and fails:
            raise TypeError("'NoneType' object is not subscriptable")
        return resolve(self, request)

    monkeypatch.setattr(LocalFiles, "resolve", raises)
    async with asyncio.timeout(WAIT_S), running(tmp_path, TWO) as runtime:
        bad = runtime.services.catalog.datasets[TableName("bad")]
        assert bad.status == "error" and bad.error is not None
        assert "NoneType" not in bad.error.message
        assert (await runtime.sql("SELECT a FROM good")).json() == [{"a": 1}]

        async def retried() -> bool:
            return bad.attempts > 3

        await eventually(retried, "it is tried again")
        assert sum("failed to load" in record.message for record in caplog.records) == 1
        fails = False
        await ready(runtime, "bad")


async def test_an_install_that_raises_once_lets_the_start_end_and_is_retried(
    tmp_path: Path,
) -> None:
    fails = [RuntimeError("the first one"), RuntimeError("and one later")]

    def haunt(services: Services) -> None:
        dispatch = services.dispatch
        while not isinstance(dispatch, DescribingDispatch):
            assert isinstance(dispatch, WrappedDispatch)
            dispatch = dispatch.inner
        install = dispatch.inner.install

        async def haunted(snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
            if fails and snapshot.version != 2:
                raise fails.pop(0)
            return await install(snapshot)

        dispatch.inner.install = haunted  # type: ignore[method-assign]

    async with asyncio.timeout(WAIT_S), running(tmp_path, TWO, before=haunt) as runtime:
        await ready(runtime, "good")
        await ready(runtime, "bad")
        assert not fails
        assert (await runtime.sql("SELECT a FROM bad")).json() == [{"a": 2}]


async def test_an_accelerator_that_raises_is_an_error_of_its_dataset(tmp_path: Path) -> None:
    fails = [KeyError("engine")]

    def haunt(services: Services) -> None:
        begin = services.accelerations.accelerate_dataset

        def haunted(*arguments: Any) -> None:
            if fails:
                raise fails.pop()
            begin(*arguments)

        services.accelerations.accelerate_dataset = haunted  # type: ignore[method-assign, assignment]

    async with asyncio.timeout(WAIT_S), running(tmp_path, ACCELERATED, before=haunt) as runtime:
        assert (await runtime.sql("SELECT a FROM good")).json() == [{"a": 1}]
        await ready(runtime, "fast")
        await views(runtime, quick="ready", quicker="ready")


async def test_views_follow_what_they_read(tmp_path: Path) -> None:
    async with asyncio.timeout(WAIT_S), running(tmp_path, GONE) as runtime:
        await views(runtime, quick="ready", quicker="ready", broken="error", lost="error",
                    left="error", right="error")  # fmt: skip
        (tmp_path / "gone.csv").write_text("a\n7\n")
        await views(runtime, lost="ready")
        (tmp_path / "gone.csv").unlink()
        await views(runtime, lost="error")
        lost = runtime.services.catalog.views[TableName("lost")]
        assert lost.error is not None and "dataset 'gone'" in lost.error.message


async def test_a_fresh_cluster_serves_while_a_view_waits_for_rows_or_lacks_a_file(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(2 * WAIT_S), clustered(tmp_path, GONE) as cluster:
        assert await cluster.membership.wait_ready(2, WAIT_S)
        await ready(cluster.runtime, "fast")
        await views(cluster.runtime, quick="ready", quicker="ready", broken="error", lost="error",
                    left="error", right="error")  # fmt: skip
        answer = await cluster.runtime.sql("SELECT b FROM quicker")
        assert answer.json() == [{"b": 2}]
        (tmp_path / "gone.csv").write_text("a\n7\n")
        await views(cluster.runtime, lost="ready")
        assert (await cluster.runtime.sql("SELECT a FROM lost")).json() == [{"a": 7}]
