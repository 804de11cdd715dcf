from datetime import date
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import FilesTable
from caraway_plugins.sources.delta import DeltaSource
from tests.kit.engine import rows, session
from tests.kit.s3 import KEY, REGION, SECRET, S3Server

ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "p": ["a b", "x/y", "ü", None] * 2,
        "d": pa.array([date(2020, 1, 1 + each % 2) for each in range(8)]),
        "n": pa.array([Decimal(each) for each in range(8)], pa.decimal128(9, 2)),
    }
)


def request(folder: Path, path: str, **params: str) -> SourceRequest:
    return SourceRequest(TableName("t"), "delta", path, params, (), "read", folder, folder)


def resolved(folder: Path, path: str = "t", **params: str) -> FilesTable:
    table = DeltaSource().resolve(request(folder, path, **params))
    assert isinstance(table, FilesTable)
    return table


async def test_partitions_have_their_values_and_are_pruned(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS, partition_by=["p", "d"])
    over = session({"t": resolved(tmp_path)})
    found = await rows(over, "SELECT * FROM t ORDER BY id")
    assert found == ROWS.to_pylist()
    sql = "EXPLAIN SELECT id FROM t WHERE p = 'ü' AND d = DATE '2020-01-01'"
    *_, plan = await rows(over, sql)
    assert plan["plan"].count(".parquet") == 1
    assert [each["id"] for each in await rows(over, "SELECT id FROM t WHERE p IS NULL")] == [3, 7]


def test_rows_and_ranges_are_those_of_the_log(tmp_path: Path) -> None:
    written = {"k": [5, 1], "d": [Decimal("1.5"), None], "t": ["a", "b"], "s": [{"k": 9}] * 2}
    for number in range(2):
        day = [date(1970, 1, 2 + number)] * 2
        rows = pa.table({**written, "k": [5 * number, 1], "day": day})
        deltalake.write_deltalake(tmp_path / "t", rows, mode="append")
    table = resolved(tmp_path)
    assert table.row_count == 4
    assert dict(table.ranges) == {"k": (0.0, 5.0), "d": (1.5, 1.5), "day": (1.0, 2.0)}


async def test_only_files_of_the_last_version_are_read(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    before = DeltaSource().fingerprint(request(tmp_path, "t"))
    DeltaTable(tmp_path / "t").delete("id >= 2")
    deltalake.write_deltalake(
        tmp_path / "t", ROWS.slice(5, 1).append_column("z", pa.array([1.5])), mode="append",
        schema_mode="merge",
    )  # fmt: skip
    over = session({"t": resolved(tmp_path)})
    found = await rows(over, "SELECT id, z FROM t ORDER BY id")
    assert found == [{"id": 0, "z": None}, {"id": 1, "z": None}, {"id": 5, "z": 1.5}]
    assert DeltaSource().fingerprint(request(tmp_path, "t")) != before


async def test_table_without_rows(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    DeltaTable(tmp_path / "t").delete()
    table = DeltaSource().resolve(request(tmp_path, "t"))
    assert isinstance(table, FilesTable) and not table.scans
    assert await rows(session({"t": table}), "SELECT count(*) AS n FROM t") == [{"n": 0}]


@pytest.mark.parametrize("path", ["none", "empty"])
def test_folder_that_is_no_delta_table(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="is not a Delta table") as caught:
        DeltaSource().resolve(request(tmp_path, path))
    assert caught.value.type == "not_found"


def test_log_that_is_cut_is_an_error(tmp_path: Path) -> None:
    for _ in range(3):
        deltalake.write_deltalake(tmp_path / "t", ROWS, mode="append")
    (tmp_path / "t" / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(DatasetError, match="cannot be read as a Delta table") as caught:
        DeltaSource().resolve(request(tmp_path, "t"))
    assert caught.value.type == "schema"
    assert str(tmp_path) not in caught.value.message


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"delta.enableDeletionVectors": "true"}, "deletionVectors.*REORG"),
        ({"delta.columnMapping.mode": "name"}, "maps its columns by name"),
    ],
)
def test_feature_that_its_files_do_not_tell_is_refused(
    tmp_path: Path, properties: dict[str, str], said: str
) -> None:
    deltalake.DeltaTable.create(tmp_path / "t", schema=ROWS.schema, configuration=properties)
    with pytest.raises(DatasetError, match=said) as caught:
        DeltaSource().resolve(request(tmp_path, "t"))
    assert caught.value.type == "invalid"


async def test_table_in_an_object_store(tmp_path: Path, s3_server: S3Server) -> None:
    s3_server.bucket("lake")
    deltalake.write_deltalake(
        "s3://lake/in/t",
        ROWS,
        partition_by=["d"],
        storage_options={
            "aws_endpoint": s3_server.endpoint,
            "aws_region": REGION,
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "aws_allow_http": "true",
        },
    )
    table = resolved(tmp_path, "s3://lake/in/t", **s3_server.params())
    found = await rows(session({"t": table}), "SELECT * FROM t ORDER BY id")
    assert found == ROWS.to_pylist()
    assert SECRET not in repr(table)
    with pytest.raises(DatasetError) as caught:
        resolved(tmp_path, "s3://lake/none", **s3_server.params())
    assert caught.value.type == "not_found"


async def test_required_fields_of_null_structs_are_null(tmp_path: Path) -> None:
    required = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    table = pa.table({"id": [1, 2], "s": pa.array([{"a": 1}, None], required)})
    deltalake.write_deltalake(tmp_path / "t", table)
    over = session({"t": resolved(tmp_path)})
    sql = "SELECT id, s['a'] AS a FROM t ORDER BY id"
    assert await rows(over, sql) == [{"id": 1, "a": 1}, {"id": 2, "a": None}]
