"""Table metadata that others wrote: snapshots by their names, and damaged documents."""

import gzip
import json
from random import Random
from typing import Any

import pytest

from caraway_plugins.iceberg import read_metadata
from caraway_plugins.iceberg.column_types import NoIcebergTypeError
from caraway_plugins.iceberg.read_metadata import NoSnapshotError, ReadMetadata


def schema(id_: int, *names: str) -> dict[str, Any]:
    fields = [
        {"id": number, "name": name, "type": "long", "required": False}
        for number, name in enumerate(names, 1)
    ]
    return {"type": "struct", "schema-id": id_, "fields": fields}


DOCUMENT: dict[str, Any] = {
    "format-version": 2,
    "table-uuid": "u",
    "location": "s3://a/t/",
    "schemas": [schema(0, "old"), schema(1, "new", "more")],
    "current-schema-id": 1,
    "partition-specs": [
        {"spec-id": 3, "fields": [{"source-id": 1, "transform": "identity", "name": "p"},
                                  {"source-id": 2, "transform": "bucket[4]", "name": "q"}]}
    ],
    "current-snapshot-id": 8,
    "snapshots": [
        {"snapshot-id": 7, "manifest-list": "s3://a/7", "schema-id": 0},
        {"snapshot-id": 8, "manifest-list": "s3://a/8"},
    ],
    "refs": {
        "main": {"snapshot-id": 8, "type": "branch"},
        "was": {"snapshot-id": 7, "type": "tag"},
        "dev": {"snapshot-id": 7, "type": "branch"},
        "lost": {"snapshot-id": 6, "type": "tag"},
    },
    "properties": {"schema.name-mapping.default": '[{"field-id": 1, "names": ["new"]}]'},
}  # fmt: skip


def parsed(**changed: Any) -> ReadMetadata:
    return read_metadata.parsed({**DOCUMENT, **changed})


@pytest.mark.parametrize(
    ("name", "snapshot", "schema_id"),
    [("", 8, 1), ("main", 8, 1), ("was", 7, 0), ("dev", 7, 1), ("7", 7, 0), ("8", 8, 1)],
)
def test_snapshots_by_name(name: str, snapshot: int, schema_id: int) -> None:
    found, columns = parsed().at(name)
    assert found is not None
    assert (found.id, columns.id) == (snapshot, schema_id)


@pytest.mark.parametrize("name", ["none", "6", "lost", "-7", "\u0667", "7" * 30, " 7"])
def test_snapshots_that_are_not_there(name: str) -> None:
    with pytest.raises(NoSnapshotError):
        parsed().at(name)


@pytest.mark.parametrize("current", [None, -1])
def test_tables_without_a_snapshot(current: int | None) -> None:
    found, columns = parsed(**{"current-snapshot-id": current}).at("")
    assert (found, columns.id) == (None, 1)


def test_parts() -> None:
    found = parsed()
    assert (found.uuid, found.location) == ("u", "s3://a/t")
    assert [each.name for each in found.known_fields().values()] == ["new", "more"]
    assert [(each.source_id, each.is_identity) for each in found.specs[3]] == [
        (1, True),
        (2, False),
    ]
    assert found.name_mapping == [{"field-id": 1, "names": ["new"]}]


def test_the_first_version_has_one_schema_and_one_spec() -> None:
    document = {
        "format-version": 1,
        "location": "/t",
        "schema": {"type": "struct", "fields": schema(0, "a")["fields"]},
        "partition-spec": [{"source-id": 1, "transform": "identity", "name": "p"}],
        "snapshots": [{"snapshot-id": 1, "manifests": ["/t/m1"]}],
        "current-snapshot-id": 1,
    }
    found = read_metadata.parsed(document)
    snapshot, columns = found.at("")
    assert snapshot is not None
    assert (snapshot.manifest_list, snapshot.manifests) == (None, ("/t/m1",))
    assert ([each.name for each in columns.fields], list(found.specs)) == (["a"], [0])
    listed = read_metadata.with_lists(document)
    assert listed["partition-specs"][0]["fields"][0]["field-id"] == 1000


@pytest.mark.parametrize(
    "changed",
    [
        {"format-version": 4},
        {"format-version": "two"},
        {"format-version": None},
        {"location": None, "schemas": None},
        {"schemas": [1]},
        {"schemas": [schema(0, "a")]},
        {"current-schema-id": None},
        {"snapshots": [1]},
        {"snapshots": [{}]},
        {"refs": ["main"]},
        {"refs": {"main": 8}},
        {"properties": ["a"]},
        {"properties": {"schema.name-mapping.default": "["}},
        {"partition-specs": [1]},
        {"partition-specs": [{"spec-id": 0, "fields": [{"source-id": 1}]}]},
    ],
)
def test_damaged_documents(changed: dict[str, Any]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        parsed(**changed)


def test_types_that_nest_too_deeply_are_damage() -> None:
    type_: Any = "int"
    for number in range(2_000):
        type_ = {"type": "list", "element-id": number, "element": type_}
    fields = [{"id": 1, "name": "a", "type": type_, "required": False}]
    with pytest.raises(ValueError, match="damaged"):
        parsed(schemas=[{"schema-id": 1, "fields": fields}])


def test_types_that_are_not_known_are_named() -> None:
    fields = [{"id": 1, "name": "a", "type": "geometry", "required": False}]
    with pytest.raises(NoIcebergTypeError, match="column 'a' is of type geometry"):
        parsed(schemas=[{"schema-id": 1, "fields": fields}])


def test_files_may_be_compressed() -> None:
    content = json.dumps(DOCUMENT).encode()
    assert read_metadata.document(content) == DOCUMENT
    assert read_metadata.document(gzip.compress(content)) == DOCUMENT


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Expecting value"),
        (b"[]", "no object"),
        (b"null", "no object"),
        (b"\xff", "codec"),
        (b"{", "Expecting property"),
        (b"[" * 100_000, "damaged"),
    ],
)
def test_files_that_are_no_metadata(content: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_metadata.document(content)


def test_each_damaged_byte_of_a_compressed_file() -> None:
    content = gzip.compress(json.dumps([DOCUMENT, Random(1).sample(range(999), 200)]).encode())
    read = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        try:
            read_metadata.document(bytes(damaged))
        except (ValueError, OSError, EOFError):
            continue
        read += 1
    assert read == 0
