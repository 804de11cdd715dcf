"""The columns that loads generate, as SQL and as checks."""

import pyarrow as pa
import pytest

from caraway_acceleration.recipes import generated
from caraway_acceleration.recipes.generated import GeneratedVectors
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import Chunking, EmbeddedColumn

NAME = TableName("t")
MARK, OTHER = "embedding-0123456789abcdef", "embedding-fedcba9876543210"
BODY = GeneratedVectors.from_column(EmbeddedColumn("body", "it's"), MARK)
CHUNKED = GeneratedVectors.from_column(EmbeddedColumn('a"b', "m", (), Chunking(9, 2, False)), MARK)


def test_generated_columns_are_added_to_a_query() -> None:
    assert generated.with_vectors("SELECT 1", []) == "SELECT 1"
    assert generated.with_vectors("SELECT 1", [BODY]) == (
        f"SELECT fresh.*, caraway_stored_vector(fresh.\"body\", 'it''s', '{MARK}') AS "
        '"body_embedding" FROM (SELECT 1) AS fresh'
    )
    assert generated.with_vectors("SELECT 1", [CHUNKED]) == (
        f"SELECT fresh.*, caraway_stored_chunks(fresh.\"a\"\"b\", 'm', '{MARK}', 9, 2, false) AS "
        '"a""b_embedding", caraway_chunk_offsets(fresh."a""b", 9, 2, false) AS "a""b_offset" '
        "FROM (SELECT 1) AS fresh"
    )


def test_known_vectors_are_taken_from_the_loaded_rows() -> None:
    sql = generated.with_vectors("SELECT 1", [BODY], '"t"')
    assert "coalesce(old_0.v, caraway_stored_vector(CASE WHEN old_0.v IS NULL THEN" in sql
    assert 'FROM "t" WHERE "body_embedding" IS NOT NULL' in sql
    assert sql.endswith('AS old_0 ON fresh."body" = old_0.t')


def test_a_version_of_another_model_is_outdated() -> None:
    sql = generated.with_vectors("SELECT 1", [BODY])
    assert not generated.is_outdated(sql, [BODY])
    assert generated.is_outdated(
        sql, [GeneratedVectors.from_column(EmbeddedColumn("body", "m"), OTHER)]
    )
    assert not generated.is_outdated("SELECT * FROM t", [BODY])


def field(name: str, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_)


VECTORS = pa.list_(pa.float32())
EMBEDDED = EmbeddedColumn("body", "m")
CUT = EmbeddedColumn("body", "m", (), Chunking())


@pytest.mark.parametrize(
    ("embedded", "vectors"),
    [
        (EMBEDDED, VECTORS),
        (EMBEDDED, pa.list_(pa.float64())),
        (EMBEDDED, pa.list_(pa.float32(), 384)),
        (EMBEDDED, pa.large_list(pa.float16())),
        (CUT, pa.list_(VECTORS)),
        (CUT, pa.list_(pa.list_(pa.float32(), 3))),
    ],
)
def test_vectors_of_the_source_are_taken(embedded: EmbeddedColumn, vectors: pa.DataType) -> None:
    source = pa.schema([field("body", pa.string()), field("body_embedding", vectors)])
    assert generated.checked(NAME, source, [embedded]) == []
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert generated.checked(NAME, pa.schema([field("body", kind)]), [embedded]) == [embedded]


@pytest.mark.parametrize(
    ("embedded", "fields", "said"),
    [
        (EMBEDDED, {"id": pa.int64()}, "embed column 'body', which its source does not have; colu"),
        (EMBEDDED, {"body": pa.int64()}, "column 'body' is int64, and only text can be embedded"),
        (
            EMBEDDED,
            {"body": pa.string(), "body_embedding": pa.string()},
            "column 'body_embedding' of its source is string, but the vectors of 'body' are a list",
        ),
        (
            EMBEDDED,
            {"body": pa.string(), "body_embedding": pa.list_(pa.int64())},
            "are a list of floats; rename or leave it out",
        ),
        (
            CUT,
            {"body": pa.string(), "body_embedding": VECTORS},
            "the vectors of 'body' are a list of lists of floats",
        ),
    ],
)
def test_columns_that_cannot_be_embedded(
    embedded: EmbeddedColumn, fields: dict[str, pa.DataType], said: str
) -> None:
    source = pa.schema([field(name, kind) for name, kind in fields.items()])
    with pytest.raises(DatasetError, match=r"^dataset 't': ") as caught:
        generated.checked(NAME, source, [embedded])
    assert said in caught.value.message and caught.value.code == "dataset.schema"
