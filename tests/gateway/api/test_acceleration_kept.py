"""A runtime marks the accelerated datasets of its manifest, so that others keep their rows."""

from functools import partial
from pathlib import Path

import pytest

from caraway_acceleration import service
from caraway_acceleration.upkeep.orphans import OrphanCollector
from caraway_acceleration.versions.usage_marks import UsageMark
from caraway_core.ids import TableName
from tests.gateway.api.accelerating import write
from tests.kit.deadlines import eventually
from tests.kit.runtime import running

ORDERS, BROKEN = TableName("orders"), TableName("broken")
MANIFEST = """
        datasets:
          - from: file:orders.parquet
            name: orders
            acceleration: {enabled: true}
          - from: file:orders.parquet
            name: broken
            acceleration: {enabled: true, refresh_sql: SELECT * FROM somewhere_else}
    """


async def test_all_accelerated_datasets_of_the_manifest_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(service, "OrphanCollector", partial(OrphanCollector, every_s=0.01))
    write(tmp_path, 10)
    async with running(tmp_path, MANIFEST) as runtime:
        accelerations = runtime.services.accelerations
        marks = accelerations._versions.marks

        async def renewed(name: TableName, since: UsageMark | None = None) -> UsageMark | None:
            mark = await marks.read(name)
            return mark if since is None or (mark and mark.revision > since.revision) else None

        for name in (ORDERS, BROKEN):
            mark = await eventually(partial(renewed, name), f"{name} is marked")
            assert await eventually(partial(renewed, name, mark), f"{name} is marked again")
        assert runtime.services.catalog.datasets[BROKEN].error is not None

        accelerations.end(BROKEN)
        mark = await marks.read(ORDERS)
        for _ in range(2):  # The first may belong to a round that was already running.
            mark = await eventually(partial(renewed, ORDERS, mark), "a round has ended")
        last = await marks.read(BROKEN)
        for _ in range(2):
            mark = await eventually(partial(renewed, ORDERS, mark), "another round has ended")
        assert await marks.read(BROKEN) == last
