"""Places of stored rows, and files that are read as one table."""

import pickle

import pyarrow as pa
import pytest

from caraway_core.tables import CsvDialect, FileScan, ResultPlace, StoreSpec

BUCKET = StoreSpec("s3", "b", "alias", {"secret_access_key": "hunter2"})
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("place", "under", "title"),
    [
        (ResultPlace("folder", "/x"), "/x/n", "/x"),
        (ResultPlace("folder", "/x/"), "/x/n", "/x/"),
        (ResultPlace("bucket", "p", BUCKET), "p/n", "s3://b/p"),
        (ResultPlace("bucket", "", BUCKET), "n", "s3://b/"),
    ],
)
def test_a_place_has_folders_and_a_title(place: ResultPlace, under: str, title: str) -> None:
    assert (place.under("n").path, place.title) == (under, title)
    assert (place.under("n").store, place.under("n").kind) == (place.store, place.kind)
    assert "hunter2" not in repr(place)


def test_columns_are_named_as_in_the_table() -> None:
    scan = FileScan("csv", ("/a",), SCHEMA, ".csv")
    assert scan.table_names == ["a", "b"]
    renamed = FileScan("csv", ("/a",), SCHEMA, ".csv", names=("x", "y"))
    assert renamed.table_names == ("x", "y")


def test_messages_name_the_classes_where_the_release_before_has_them() -> None:
    for sent in (FileScan("csv", (), SCHEMA, ".csv"), BUCKET, CsvDialect(), ResultPlace("f", "/")):
        assert b"caraway_core.tables\x94" in pickle.dumps(sent)
        assert b"caraway_core.tables.files" not in pickle.dumps(sent)
        assert pickle.loads(pickle.dumps(sent)) == sent
