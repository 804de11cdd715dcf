"""Manifests that others wrote: the files of a snapshot, and the ids of their rows."""

import io
from typing import Any

import fastavro
import pytest

from caraway_plugins.iceberg import avro_schemas, read_manifests
from caraway_plugins.iceberg.read_manifests import (
    PATH_ID,
    EncryptedFileError,
    ListedFile,
    ListedManifest,
)

LISTED = ListedManifest("s3://a/m", None, 5, 2)


class NoPartition:
    fields = ()


def written(schema: Any, records: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(schema), records)
    return stream.getvalue()


def entry(status: int = 1, sequence_number: int | None = None, **file: Any) -> dict[str, Any]:
    data_file = {
        "content": 0, "file_path": "s3://a/1", "file_format": "PARQUET", "partition": {},
        "record_count": 3, "file_size_in_bytes": 9, **file,
    }  # fmt: skip
    return {"status": status, "snapshot_id": 1, "sequence_number": sequence_number,
            "file_sequence_number": None, "data_file": data_file}  # fmt: skip


def files(*entries: dict[str, Any], version: int = 2) -> list[ListedFile]:
    content = written(avro_schemas.entry_schema(NoPartition(), version), list(entries))
    return read_manifests.manifest(content, LISTED)


def test_deleted_entries_are_left_out() -> None:
    found = files(entry(0), entry(2, file_path="s3://a/gone"), entry(1, file_path="s3://a/2"))
    assert [each.location for each in found] == ["s3://a/1", "s3://a/2"]
    (first, _) = found
    assert (first.format, first.row_count, first.spec_id) == ("parquet", 3, 2)
    assert first.manifest == "s3://a/m"


@pytest.mark.parametrize(("own", "number"), [(None, 5), (0, 0), (4, 4)])
def test_numbers_of_entries_are_those_of_their_manifest(own: int | None, number: int) -> None:
    assert [each.sequence_number for each in files(entry(sequence_number=own))] == [number]


def test_bounds_and_sizes_are_by_column() -> None:
    pairs = [{"key": 1, "value": b"a"}, {"key": 2, "value": b"b"}]
    (found,) = files(entry(lower_bounds=pairs, column_sizes=[{"key": 1, "value": 7}]))
    assert (found.lower, found.upper, found.column_sizes) == ({1: b"a", 2: b"b"}, {}, {1: 7})


@pytest.mark.parametrize(
    ("lower", "upper", "only"),
    [(b"s3://a/1", b"s3://a/1", "s3://a/1"), (b"s3://a/1", b"s3://a/2", None), (b"", b"", None)],
)
def test_positions_may_be_of_one_file(lower: bytes, upper: bytes, only: str | None) -> None:
    (found,) = files(
        entry(content=1, lower_bounds=[{"key": PATH_ID, "value": lower}],
              upper_bounds=[{"key": PATH_ID, "value": upper}])
    )  # fmt: skip
    assert found.is_of_positions and not found.is_data
    assert found.only_file == only


def test_other_contents_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown content 3"):
        files(entry(content=3))


def test_encrypted_files_are_refused() -> None:
    with pytest.raises(EncryptedFileError):
        files(entry(key_metadata=b"k"))


@pytest.mark.parametrize(
    ("own", "first", "ids"),
    [
        ([None, None, None], None, [None, None, None]),
        ([None, None, None], 10, [10, 13, 16]),
        ([None, 2, None], 10, [10, 2, 13]),
        ([5, 6, 7], None, [None, None, None]),
    ],
)
def test_first_row_ids(own: list[int | None], first: int | None, ids: list[int | None]) -> None:
    data_files = [{"first_row_id": each, "record_count": 3} for each in own]
    assert list(read_manifests.first_row_ids(data_files, first)) == ids


def test_a_manifest_that_was_cut_is_told_by_its_size() -> None:
    content = written(avro_schemas.entry_schema(NoPartition(), 2), [entry()])
    listed = ListedManifest("m", len(content) + 1)
    with pytest.raises(EOFError, match=f"has {len(content)} bytes, and had {len(content) + 1}"):
        read_manifests.manifest(content, listed)
    assert read_manifests.manifest(content, ListedManifest("m", len(content)))


def test_lists_name_manifests() -> None:
    record = {
        "manifest_path": "s3://a/m", "manifest_length": 9, "partition_spec_id": 0, "content": 0,
        "sequence_number": 4, "min_sequence_number": 1, "added_snapshot_id": 1,
        "added_files_count": 1, "existing_files_count": 0, "deleted_files_count": 0,
        "added_rows_count": 1, "existing_rows_count": 0, "deleted_rows_count": 0,
    }  # fmt: skip
    stream = io.BytesIO()
    fastavro.writer(stream, avro_schemas.LIST_SCHEMAS[2], [record])
    assert read_manifests.manifest_list(stream.getvalue()) == [ListedManifest("s3://a/m", 9, 4)]
    stream = io.BytesIO()
    fastavro.writer(stream, avro_schemas.LIST_SCHEMAS[2], [{**record, "key_metadata": b"k"}])
    with pytest.raises(EncryptedFileError):
        read_manifests.manifest_list(stream.getvalue())
