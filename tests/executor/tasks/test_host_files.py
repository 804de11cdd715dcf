"""Tables over files that only the scheduler's host has; folders stand for hosts."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_core.errors import ExecutionError
from caraway_core.ids import CatalogVersion, TableName, new_query_id
from caraway_core.protocols.fleet import OwnFile, Pinned, TableCatalog
from caraway_core.statements import Statement
from caraway_core.tables import FileScan, FilesTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.tasks.host_files import HostFiles
from caraway_executor.tasks.worker import Worker
from caraway_scheduler.dispatch.fleets import own_files
from caraway_scheduler.dispatch.fleets.own_files import OwnFiles
from tests.kit.clocks import Clock
from tests.kit.workers import catalog, identity

SUM = "SELECT sum(v) AS s FROM web"


def web(folder: Path, name: str, *values: int) -> FilesTable:
    path = folder / "cache" / "http" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table({"v": list(values)})
    pq.write_table(rows, path)
    scan = FileScan(
        "parquet", (str(path),), rows.schema, ".parquet", size_bytes=path.stat().st_size
    )
    return FilesTable(rows.schema, (scan,))


class Hosts:
    """A scheduler in one folder, and an executor that sees only another, unless they share."""

    def __init__(self, folder: Path, *, shared: bool = False, most_bytes: int = 1 << 20) -> None:
        self.ours, self.theirs, self.clock = folder / "scheduler", folder / "executor", Clock()
        self.files = HostFiles(
            self.theirs / "copies",
            self.clock,
            lambda path: Path(path).is_file() and (shared or not path.startswith(str(self.ours))),
        )
        self.worker = Worker(identity(), EngineSettings(1), self.clock, self.files)
        self.own = OwnFiles(self.ours / "cache", most_bytes)

    def catalog(self, table: FilesTable, version: int = 1, origin: str = "here") -> TableCatalog:
        made = catalog({"web": table}, version, origin)
        return replace(made, files=self.own.find(made.tables))

    async def install(
        self, table: FilesTable, version: int = 1, origin: str = "here"
    ) -> dict[TableName, str]:
        made = self.catalog(table, version, origin)
        for file in await self.worker.missing(made.files):
            self.worker.keep(file, own_files.content(file))
        return dict(self.worker.install(made))

    async def sum(self, origin: str = "here") -> int:
        page = await self.worker.open(new_query_id(), Statement(SUM, {}), origin)
        return int(page.batches[0]["s"][0].as_py())

    @property
    def copies(self) -> list[str]:
        folder = self.theirs / "copies"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_parts_of_files_that_a_killed_process_left_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".arriving-abc").write_bytes(b"half")
    (tmp_path / "other").write_bytes(b"whole")
    HostFiles(tmp_path, lambda: 0.0)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


async def test_file_of_another_host_is_read_from_a_copy(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    table = web(hosts.ours, "a.parquet", 1, 2)
    (file,) = hosts.catalog(table).files
    assert await hosts.install(table) == {}
    Path(file.path).unlink()
    assert await hosts.sum() == 3
    assert hosts.copies == [f"{file.digest}.parquet"]
    await hosts.worker.aclose()


async def test_file_that_both_hosts_see_is_not_copied(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, shared=True)
    assert await hosts.install(web(hosts.ours, "a.parquet", 1, 2)) == {}
    assert await hosts.sum() == 3
    assert hosts.copies == []
    await hosts.worker.aclose()


async def test_same_content_is_sent_once(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    await hosts.install(web(hosts.ours, "a.parquet", 1))
    again = hosts.catalog(web(hosts.ours, "b.parquet", 1), origin="there")
    assert await hosts.worker.missing(again.files) == ()
    assert hosts.worker.install(again) == {}
    assert await hosts.sum("there") == 1
    await hosts.worker.aclose()


async def test_copies_go_when_no_catalog_that_is_kept_names_them(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    first = CatalogVersion(1)
    for version in range(1, 6):
        hosts.clock.now += 601
        await hosts.install(web(hosts.ours, f"{version}.parquet", version), version)
        newest = CatalogVersion(version)
        # A statement runs over the first one all the time.
        await hosts.worker.describe("here", Pinned(newest, frozenset({first})))
        assert len(hosts.copies) == min(version, 2)
    await hosts.worker.describe("here", Pinned(newest))
    assert len(hosts.copies) == 1
    assert await hosts.sum() == 5
    await hosts.worker.aclose()


async def test_copy_that_waits_for_its_catalog_is_kept(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    waiting = hosts.catalog(web(hosts.ours, "a.parquet", 1))
    for file in await hosts.worker.missing(waiting.files):
        hosts.worker.keep(file, own_files.content(file))
    await hosts.install(web(hosts.ours, "b.parquet", 2), origin="there")
    assert hosts.worker.install(waiting) == {}
    assert await hosts.sum() == 1
    await hosts.worker.aclose()


async def test_table_fails_whose_file_did_not_arrive(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    failed = hosts.worker.install(hosts.catalog(web(hosts.ours, "a.parquet", 1)))
    assert "has not arrived" in failed[TableName("web")]
    await hosts.worker.aclose()


async def test_file_too_large_to_be_sent_is_an_error_that_says_so(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, most_bytes=10)
    failed = await hosts.install(web(hosts.ours, "a.parquet", 1))
    assert "too large to be sent" in failed[TableName("web")]
    await hosts.worker.aclose()


@pytest.mark.parametrize(
    "change",
    [
        {"suffix": "/../../x"},
        {"digest": "../x"},
        {"digest": "0" * 64},
    ],
)
async def test_content_is_only_kept_under_its_own_name(
    tmp_path: Path, change: dict[str, str]
) -> None:
    hosts = Hosts(tmp_path)
    (file,) = hosts.catalog(web(hosts.ours, "a.parquet", 1)).files
    bad: OwnFile = replace(file, **change)  # type: ignore[arg-type]
    with pytest.raises(ExecutionError, match="copy of"):
        hosts.worker.keep(bad, own_files.content(file))
    assert hosts.copies == []
    await hosts.worker.aclose()


async def test_full_disk_fails_the_copy_and_leaves_nothing(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    hosts.theirs.mkdir()
    (hosts.theirs / "copies").write_text("in the way")
    (file,) = hosts.catalog(web(hosts.ours, "a.parquet", 1)).files
    with pytest.raises(ExecutionError, match="cannot keep a copy"):
        await asyncio.to_thread(hosts.worker.keep, file, own_files.content(file))
    await hosts.worker.aclose()
