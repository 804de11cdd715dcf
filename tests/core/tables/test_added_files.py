import pyarrow as pa
import pytest

from caraway_core.tables import FileScan, added_files
from caraway_core.tables.files import FileFormat

SCHEMA = pa.schema([("k", pa.int64())])


def scan(format_: FileFormat, extension: str, *paths: str) -> FileScan:
    return FileScan(format_, paths or ("/data/t/",), SCHEMA, extension)


@pytest.mark.parametrize(
    ("scans", "why"),
    [
        ([scan("parquet", ".parquet")], ""),
        ([scan("json", "")], ""),
        ([scan("json", ".jsonl")], "its files end with '.jsonl', and files are written as '.json'"),
        ([scan("avro", ".avro")], "no files of avro are written"),
        ([scan("csv", ".csv", "/data/t.csv")], "its rows are in files that are only read"),
        ([scan("csv", ".csv", "/a/", "/b/")], "its rows are in files that are only read"),
        ([scan("csv", ".csv")] * 2, "its rows are in files that are only read"),
        ([], "its rows are in files that are only read"),
    ],
)
def test_files_are_added_to_folders_whose_files_have_the_ending(
    scans: list[FileScan], why: str
) -> None:
    assert added_files.why_none(scans) == why
