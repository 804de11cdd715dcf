"""The format and the compression of a file, from its name and from params."""

import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.sources import formats
from caraway_plugins.sources.formats import FileKind
from caraway_plugins.sources.params import Params


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.parquet", "parquet"), ("A.PQ", "parquet"), ("a.csv.gz", "csv"), ("a.TSV.ZST", "tsv"),
        ("a.tab", "tsv"), ("a.json", "json"), ("a.jsonl.xz", "jsonl"), ("a.ndjson", "ndjson"),
        ("x/*.avro", "avro"), ("a.feather", "feather"), ("a.gz", None), ("a", None), ("", None),
        (".csv", None), ("a.csv.gz.gz", None), ("a.parquet/", "parquet"), ("a.txt", None),
    ],
)  # fmt: skip
def test_formats_of_names(path: str, name: str | None) -> None:
    found = formats.guessed(path)
    if name is None:
        assert found is None
    else:
        assert found is not None
        assert formats.same(found, name)


@pytest.mark.parametrize(
    ("path", "name", "params", "kind"),
    [
        ("a.csv", "csv", {}, FileKind("csv", False, ".csv", "")),
        ("a.tsv.gz", "tsv", {}, FileKind("csv", True, ".tsv.gz", "gzip")),
        ("a.CSV.GZ", "csv", {}, FileKind("csv", False, ".CSV.GZ", "gzip")),
        ("a.dat", "json", {"file_compression_type": "ZSTD"},
         FileKind("json", False, ".dat", "zstd")),
        ("a.csv.gz", "csv", {"file_compression_type": "none"},
         FileKind("csv", False, ".csv.gz", "")),
        ("a", "parquet", {}, FileKind("parquet", False, "", "")),
    ],
)  # fmt: skip
def test_kinds(path: str, name: str, params: dict[str, str], kind: FileKind) -> None:
    assert formats.kind(path, name, Params(params)) == kind


@pytest.mark.parametrize(
    ("path", "name", "params", "type_"),
    [
        ("a.parquet.gz", "parquet", {}, "unsupported"),
        ("a.arrow", "arrow", {"file_compression_type": "gzip"}, "unsupported"),
        ("a.csv", "csv", {"file_compression_type": "zip"}, "invalid"),
    ],
)
def test_compressions_that_are_not_read(
    path: str, name: str, params: dict[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        formats.kind(path, name, Params(params))
    assert caught.value.type == type_


def test_formats_of_params() -> None:
    assert formats.wanted(Params({})) is None
    assert formats.wanted(Params({"file_format": "Parquet"})) == "parquet"
    with pytest.raises(DatasetError, match=r"parqet.*parquet"):
        formats.wanted(Params({"file_format": "parqet"}))


def test_tables_of_tabs_are_not_those_of_commas() -> None:
    assert formats.same("json", "ndjson")
    assert not formats.same("csv", "tsv")
    assert not formats.same("csv", "json")
    assert formats.suffixes_of("tsv") == {".tsv", ".tab"}
