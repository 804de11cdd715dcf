"""Rows that deletion vectors remove. PyIceberg reads the same vectors, and judges."""

import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from caraway_core.tables import scanners
from caraway_core.tables.scanners import RowRequest
from caraway_plugins.sources.iceberg.data_files import DeleteFile, VectorPlace
from caraway_plugins.sources.iceberg.scanning import IcebergTable
from tests.kit import iceberg_tables as tables
from tests.kit import iceberg_vectors as vectors
from tests.kit.s3 import KEY, REGION, SECRET, S3Server
from tests.plugins.sources.iceberg.judged import (
    BY_DAY,
    MORE,
    ROWS,
    assert_as_judged,
    assert_refused,
    read_rows,
)

LEFT = [{"id": each} for each in (1, 2, 4, 5, 6, 9)]
IDS = "SELECT id FROM t ORDER BY id"


def paths(folder: Path) -> dict[int, str]:
    """Return the data files of the table, by their rows."""
    found = [each["data_file"] for each in tables.data_files(folder / "t")]
    return {each["record_count"]: each["file_path"] for each in found}


def created(folder: Path) -> dict[int, str]:
    """Create a table of the third version with files of eight and two rows."""
    tables.create(folder, ROWS).append(MORE)
    vectors.upgrade(folder / "t")
    return paths(folder)


async def test_rows_of_vectors_are_left_out(tmp_path: Path) -> None:
    files = created(tmp_path)
    vectors.delete(tmp_path / "t", {files[8]: [0, 3, 7], files[2]: [0]})
    spec = await assert_as_judged(tmp_path)
    assert isinstance(spec, IcebergTable)
    assert await read_rows(spec, IDS) == LEFT
    assert await read_rows(spec, "SELECT count(*) AS n FROM t WHERE id < 5") == [{"n": 3}]
    # A vector is in place of those before, and has their positions.
    vectors.delete(tmp_path / "t", {files[8]: [0, 1, 3, 7], files[2]: [0, 1]})
    ids = [each["id"] for each in await read_rows(await assert_as_judged(tmp_path))]
    assert sorted(ids) == [2, 4, 5, 6]


async def test_a_vector_takes_the_place_of_positions_and_not_of_values(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS).append(MORE)
    files = paths(tmp_path)
    tables.delete_positions(tmp_path / "t", {files[8]: [6]})
    tables.delete_values(tmp_path / "t", pa.table({"id": pa.array([9], pa.int32())}), {"id": 1})
    vectors.upgrade(tmp_path / "t")
    vectors.delete(tmp_path / "t", {files[8]: [0, 3, 6, 7], files[2]: [0]})
    spec = tables.resolved(tmp_path)
    assert isinstance(spec, IcebergTable)
    kinds = {each.row_count: [bool(one.vector) for one in each.deletes] for each in spec.files}
    assert kinds == {8: [False, True], 2: [False, True]}
    assert [each["id"] for each in await read_rows(spec, IDS)] == [1, 2, 4, 5]


def test_files_with_vectors_are_parts_that_go_to_other_processes(tmp_path: Path) -> None:
    files = created(tmp_path)
    vectors.delete(tmp_path / "t", {files[8]: [0, 3, 7], files[2]: [0]})
    spec = pickle.loads(pickle.dumps(tables.resolved(tmp_path)))
    assert spec == tables.resolved(tmp_path)
    found = [
        {
            row["id"]
            for batch in scanners.of(spec).scan(spec, RowRequest(("id",), (part,)))
            for row in batch.to_pylist()
        }
        for part in spec.splits
    ]
    assert sorted(found, key=len) == [{9}, {1, 2, 4, 5, 6}]


def test_messages_of_the_release_before_have_no_vectors() -> None:
    file = DeleteFile("p", 1, None, (2,), VectorPlace(4, 5, 6))
    before = DeleteFile.__new__(DeleteFile)
    state: Any = file.__getstate__()
    before.__setstate__(state[:-1])  # type: ignore[attr-defined]
    assert before == DeleteFile("p", 1, None, (2,))


@pytest.mark.parametrize("seed", range(3))
async def test_random_vectors_of_a_large_file(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    count = 200_000
    tables.create(tmp_path, pa.table({"id": pa.array(range(count), pa.int64())}))
    vectors.upgrade(tmp_path / "t")
    gone = {*chosen.sample(range(count), 2_000), *range(70_000, 70_000 + chosen.randrange(60_000))}
    vectors.delete(tmp_path / "t", {paths(tmp_path)[count]: sorted(gone)})
    left = set(range(count)) - gone
    sql = "SELECT count(*) AS n, sum(id) AS total FROM t"
    answer = [{"n": len(left), "total": sum(left)}]
    assert await read_rows(tables.resolved(tmp_path), sql) == answer
    assert tables.judge(tmp_path / "t").num_rows == len(left)


async def test_vectors_of_a_table_with_partitions(tmp_path: Path) -> None:
    tables.create(tmp_path, ROWS, partition=BY_DAY)
    vectors.upgrade(tmp_path / "t")
    found = [each["data_file"] for each in tables.data_files(tmp_path / "t")]
    vectors.delete(tmp_path / "t", {each["file_path"]: [1] for each in found})
    assert len(await read_rows(await assert_as_judged(tmp_path))) == 5


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"content_offset": None}, "do not say where a deletion vector is"),
        ({"content_size_in_bytes": None}, "do not say where a deletion vector is"),
        ({"referenced_data_file": None}, "do not say where a deletion vector is"),
        ({"record_count": 9}, "a deletion vector has more rows than its data file"),
    ],
)
def test_a_vector_that_manifests_describe_badly_is_refused(
    tmp_path: Path, other: dict[str, object], said: str
) -> None:
    files = created(tmp_path)
    vectors.delete(tmp_path / "t", {files[8]: [0]}, **other)
    assert_refused(tmp_path, "invalid", said)


@pytest.mark.parametrize("size", [0, 5, 20])
async def test_a_vector_that_is_damaged_is_an_error(tmp_path: Path, size: int) -> None:
    files = created(tmp_path)
    file = vectors.delete(tmp_path / "t", {files[8]: [0]})
    spec = tables.resolved(tmp_path)
    file.write_bytes(file.read_bytes()[:size])
    said = f"the deletion vector in '{file.name}' is damaged: its length"
    with pytest.raises(QueryError, match=said):
        await read_rows(spec)
    file.unlink()
    with pytest.raises(QueryError, match="cannot be read"):
        await read_rows(spec)


async def test_vectors_in_an_object_store(tmp_path: Path, s3_server: S3Server) -> None:
    s3_server.bucket("vectors")
    files = created(tmp_path)
    vectors.delete(tmp_path / "t", {files[8]: [0, 3, 7], files[2]: [0]})
    for each in (tmp_path / "t").rglob("*.*"):
        s3_server.put("vectors", f"lake/{each.relative_to(tmp_path)}", each.read_bytes())
    table = tables.resolved(
        tmp_path, "s3://vectors/lake/t",
        iceberg_s3_endpoint=s3_server.endpoint, iceberg_s3_region=REGION,
        iceberg_s3_access_key_id=KEY, iceberg_s3_secret_access_key=SECRET,
    )  # fmt: skip
    assert await read_rows(table, IDS) == LEFT
