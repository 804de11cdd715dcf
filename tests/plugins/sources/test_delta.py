import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from caraway_core.errors import DatasetError, QueryError
from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_core.tables import FilesTable
from caraway_plugins.sources.delta import DeltaSource
from tests.kit import iceberg_vectors
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


def refused(folder: Path, said: str) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        DeltaSource().resolve(request(folder, "t"))
    assert caught.value.type == "invalid"
    assert str(folder) not in caught.value.message


def test_columns_that_its_files_do_not_name_are_refused(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    deltalake.DeltaTable.create(tmp_path / "t", schema=ROWS.schema, configuration=properties)
    refused(tmp_path, "maps its columns by name")


def entries(folder: Path, version: int) -> list[dict[str, Any]]:
    path = folder / "t" / "_delta_log" / f"{version:020}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]


def commit(folder: Path, version: int, *actions: dict[str, Any]) -> None:
    path = folder / "t" / "_delta_log" / f"{version:020}.json"
    path.write_text("\n".join(json.dumps(each) for each in actions))


def delete_by_vector(folder: Path, position: int) -> Path:
    """Delete a row of the only file of the first version, as other engines do."""
    (add,) = (each["add"] for each in entries(folder, 0) if "add" in each)
    vector = iceberg_vectors.blob([position])  # Both formats have the same vectors.
    path = folder / "t" / "vector.bin"
    path.write_bytes(b"\1" + vector)
    described = {
        "storageType": "p", "pathOrInlineDv": path.as_uri(), "offset": 1,
        "sizeInBytes": len(vector) - 8, "cardinality": 1,
    }  # fmt: skip
    moment = add["modificationTime"] + 1
    gone = {"path": add["path"], "deletionTimestamp": moment, "dataChange": True}
    commit(
        folder, 1, {"commitInfo": {"timestamp": moment, "operation": "DELETE"}},
        {"remove": gone}, {"add": {**add, "deletionVector": described}},
    )  # fmt: skip
    return path


def with_vectors(folder: Path) -> None:
    """Make a table that may have vectors, and has none."""
    properties = {"delta.enableDeletionVectors": "true"}
    deltalake.write_deltalake(folder / "t", ROWS, configuration=properties)
    assert "deletionVectors" in (DeltaTable(folder / "t").protocol().reader_features or ())


async def test_table_that_may_have_vectors_is_read_and_written_while_it_has_none(
    tmp_path: Path,
) -> None:
    with_vectors(tmp_path)
    sql = "SELECT * FROM t ORDER BY id"
    assert await rows(session({"t": resolved(tmp_path)}), sql) == ROWS.to_pylist()
    writable = frozenset({TableName("t")})
    given = replace(request(tmp_path, "t"), access="read_write")
    for statement in (
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t SELECT 8 AS id, 'i' AS p, DATE '2020-01-01' AS d, 8.00 AS n",
    ):
        over = session({"t": DeltaSource().resolve(given)})
        assert await rows(over, statement, writable=writable) == [{"count": 1}]
    found = await rows(session({"t": resolved(tmp_path)}), sql)
    assert [each["id"] for each in found] == [0, 2, 3, 4, 5, 6, 7, 8]


async def test_table_with_vectors_is_refused_until_they_are_gone(tmp_path: Path) -> None:
    with_vectors(tmp_path)
    given = replace(request(tmp_path, "t"), access="read_write")
    before = session({"t": DeltaSource().resolve(given)})
    path = delete_by_vector(tmp_path, 1)
    assert DeltaTable(tmp_path / "t").deletion_vectors().read_all().num_rows == 1
    said = "reader features that are not supported: deletionVectors; purge .* REORG"
    refused(tmp_path, said)
    with pytest.raises(QueryError, match="deletionVectors"):
        await rows(before, "DELETE FROM t WHERE id = 1", writable=frozenset({TableName("t")}))
    path.unlink()
    refused(tmp_path, said)
    deltalake.write_deltalake(tmp_path / "t", ROWS.slice(2), mode="overwrite")
    found = await rows(session({"t": resolved(tmp_path)}), "SELECT id FROM t ORDER BY id")
    assert [each["id"] for each in found] == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    "type_",
    [
        "variant",
        {"type": "array", "elementType": "variant", "containsNull": True},
        {
            "type": "struct",
            "fields": [{"name": "x", "type": "variant", "nullable": True, "metadata": {}}],
        },
    ],
    ids=str,
)
def test_a_column_of_any_type_is_refused(tmp_path: Path, type_: object) -> None:
    with_vectors(tmp_path)
    first = entries(tmp_path, 0)
    metadata = next(each["metaData"] for each in first if "metaData" in each)
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": "v", "type": type_, "nullable": True, "metadata": {}})
    metadata["schemaString"] = json.dumps(schema)
    commit(tmp_path, 0, *first)
    refused(tmp_path, "not supported: variantType")


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
