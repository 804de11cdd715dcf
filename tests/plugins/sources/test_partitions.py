from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_plugins.sources import partitions

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.dictionaries(TEXTS.filter(lambda key: "=" not in key and "/" not in key), TEXTS))
def test_values_are_what_was_written_into_the_names_of_folders(values: dict[str, str]) -> None:
    path = "".join(f"{key}={quote(value, safe='')}/" for key, value in values.items())
    if any(ord(char) < 32 or char in "\x85\u2028\u2029" for key in values for char in key):
        return  # No tool writes such a key.
    assert dict(partitions.values_of(f"{path}part-0.parquet")) == values


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("f.csv", ()),
        ("k=1", ()),
        ("a/k=1/f.csv", (("k", "1"),)),
        ("k=1/j=__HIVE_DEFAULT_PARTITION__/f.csv", (("k", "1"), ("j", None))),
        ("k=/f.csv", (("k", ""),)),
        ("=x/f.csv", ()),
        ("k=a=b/f.csv", (("k", "a=b"),)),
        ("k=%2F%20/f.csv", (("k", "/ "),)),
    ],
)
def test_keys_and_values_of_a_path(path: str, values: partitions.Values) -> None:
    assert partitions.values_of(path) == values


def test_two_folders_of_one_key_are_refused() -> None:
    with pytest.raises(DatasetError, match="two partition folders of one name"):
        partitions.values_of("k=1/x/k=2/f.csv")


@pytest.mark.parametrize(
    ("texts", "type_"),
    [
        (["1", "-2", None], pa.int64()),
        (["007"], pa.int64()),
        (["1", "x"], pa.string()),
        (["9" * 19], pa.string()),
        (["\u0663"], pa.string()),
        (["1\n"], pa.string()),
        (["2024-02-29"], pa.date32()),
        (["2023-02-29"], pa.string()),
        (["20240229"], pa.int64()),
        (["2024-W01-1"], pa.string()),
        ([None], pa.string()),
        ([""], pa.string()),
    ],
)
def test_the_type_of_a_key_fits_all_of_its_values(
    texts: list[str | None], type_: pa.DataType
) -> None:
    files = [(("k", text),) for text in texts]
    assert partitions.columns(files, ()) == (pa.field("k", type_),)
    declared = [pa.field("k", pa.large_string()), pa.field("other", pa.int8())]
    assert partitions.columns(files, declared) == (pa.field("k", pa.large_string()),)


def test_only_leading_keys_are_read_by_the_engine() -> None:
    assert partitions.leads("k=1/j=2/f.csv") and partitions.leads("k=1/x/f.csv")
    assert partitions.leads("f.csv") and not partitions.leads("x/k=1/f.csv")
