"""Files that are gone are noticed, and only those."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import ExecutionPlan, SessionContext

from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.tables import FileScan, FilesTable, StoreSpec, TableSpec
from caraway_engine.scans import presence
from tests.kit.engine import memory

SCHEMA = pa.schema([("a", pa.int64())])
T, R = TableName("t"), TableName("r")
STORE = StoreSpec("s3", "bucket", "alias", {})


def files(*paths: str, store: StoreSpec | None = None) -> FilesTable:
    return FilesTable(SCHEMA, (FileScan("parquet", paths, SCHEMA, ".parquet", store=store),))


def found(*named: str, **tables: TableSpec) -> presence.SingleFiles:
    specs = {TableName(name): spec for name, spec in tables.items()}
    return presence.single_files(map(TableName, named), specs)


def never(_table: TableName) -> ExecutionPlan:
    raise AssertionError("nothing is to be planned")


def test_single_files_are_told_from_folders_and_stores() -> None:
    assert found("t", t=files("/x/a.parquet")).local == {"/x/a.parquet": T}
    assert found("t", t=files("/x/")).local == {}
    both = found("t", "r", t=files("/x/", "/x/b"), r=files("s3://alias/a", store=STORE))
    assert both.local == {"/x/b": T} and both.remote == {R}
    assert found("r", r=files("s3://alias/a/", store=STORE)).remote == frozenset()
    nothing = found("none", "m", m=memory(a=[1]), t=files("/x/a"))
    assert (nothing.local, nothing.remote) == ({}, frozenset()), "nobody asked for `t`"


def test_a_file_that_is_there_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "it's ü.parquet"
    path.touch()
    presence.check(found("t", t=files(str(path))), never)
    presence.check(found("t", t=files(f"{tmp_path}/none-*.parquet")), never)
    presence.check(found(), never)


def test_a_file_that_is_gone_is_named_without_its_folder(tmp_path: Path) -> None:
    with pytest.raises(
        ExecutionError, match=r"dataset 't': its file 'a.parquet' is missing"
    ) as exc:
        presence.check(found("t", t=files(f"{tmp_path}/secret/a.parquet")), never)
    assert "secret" not in exc.value.message


def test_a_remote_table_is_planned_to_see_what_it_reads(tmp_path: Path) -> None:
    context = SessionContext()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    context.register_parquet("there", str(tmp_path / "a.parquet"))
    (tmp_path / "empty").mkdir()
    context.register_parquet("gone", f"{tmp_path}/empty/", schema=SCHEMA)
    remote = found("r", r=files("s3://alias/a", store=STORE))

    def plan(sql: str) -> Any:
        return lambda table: context.sql(sql).execution_plan() if table == R else never(table)

    presence.check(remote, plan("SELECT * FROM there"))
    for sql in ("SELECT * FROM gone", "SELECT * FROM there UNION ALL SELECT * FROM gone"):
        with pytest.raises(
            ExecutionError, match="'r': one of its files is missing in the object store"
        ):
            presence.check(remote, plan(sql))


def test_states_are_those_of_all_files_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/1", "a/b/2", "3"):
        (tmp_path / name).write_text(name)
    places = (f"{tmp_path}/a/", str(tmp_path / "3"))
    states = presence.states(places)
    assert states is not None
    assert [path for path, _, _ in states] == sorted(
        str(tmp_path / name) for name in ("a/1", "a/b/2", "3")
    )
    (tmp_path / "a" / "b" / "2").unlink()
    assert presence.states(places) != states
    (tmp_path / "3").unlink()
    assert presence.states(places) is None


def test_folders_with_many_files_have_no_states(tmp_path: Path) -> None:
    for number in range(257):
        (tmp_path / str(number)).touch()
    assert presence.states((f"{tmp_path}/",)) is None
    (tmp_path / "0").unlink()
    assert presence.states((f"{tmp_path}/",)) is not None
