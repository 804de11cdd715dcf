"""Columns of JSON files, and texts that are nearly JSON."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_plugins.sources import json_shape
from caraway_plugins.sources.samples import FileSample

VALUES = st.recursive(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3) | st.booleans(),
    lambda inner: (
        st.dictionaries(st.text(min_size=1, max_size=2), inner, max_size=2)
        | st.lists(inner, max_size=1)
    ),
    max_leaves=4,
)


def _infer(text: str, form: str = "auto", *, is_whole: bool = True) -> json_shape.JsonShape:
    return json_shape.infer(FileSample(text, is_whole), form, None, "f.json")


@given(st.dictionaries(st.text(min_size=1, max_size=3), VALUES, max_size=3))
def test_the_layout_does_not_matter(record: dict[str, Any]) -> None:
    text = json.dumps(record)
    lines = _infer(f"{text}\n{text}")
    assert lines == _infer(text) == _infer(json.dumps(record, indent=1, ensure_ascii=False))
    array = _infer(f" [{text} ,\n{text}]")
    assert array.is_array and not lines.is_array
    assert array.schema == lines.schema
    assert lines.schema.names == list(record)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ('{"a": 1}\n{"a": null}', pa.int64()),
        ('{"a": 1}\n{"a": 1.5}', pa.float64()),
        ('{"a": 9223372036854775808}', pa.float64()),
        ('{"a": null}', pa.null()),
        ('{"a": {}}', pa.null()),
        ('{"a": [1, 2.5]}', pa.list_(pa.float64())),
        ('{"a": {"b": 1}}\n{"a": {"c": "x"}}', pa.struct([("b", pa.int64()), ("c", pa.string())])),
        ('{"a": "2024-01-01"}', pa.string()),
    ],
)
def test_types_of_all_records_are_united(text: str, type_: pa.DataType) -> None:
    assert _infer(text).schema.field("a").type == type_


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "'f.json' is nested too deeply"),
        ('{"a":' * 50_000, "'f.json' is nested too deeply"),
        ('{"\\ud800": 1}', "half of a Unicode character"),
        ('{"a": {"\\udfff": 1}}', "half of a Unicode character"),
        ('{"a": NaN}', "'f.json' is not JSON at line 1"),
        ('{"a": 1}\n{"a": -Infinity}', "'f.json' is not JSON at line 2"),
        ('{"a": 1}\n\n{"a": }', "'f.json' is not JSON at line 3"),
        ('{"a": ' + "9" * 5000 + "}", "'f.json' is not JSON at line 1"),
        ('{"a": 1},{"a": 2}', "is not JSON"),
        ('{"a": 1}\x00', "is not JSON"),
        ('[{"a": 1}', "the JSON array in 'f.json' is truncated"),
        ("[1]", "record 1 of 'f.json' is not a JSON object"),
        ('{"a": 1}\n"x"', "record 2 of 'f.json' is not a JSON object"),
        ('{"a": true}\n{"a": "x"}', "column 'a' of 'f.json' holds both bool and string values"),
        ('{"a": [1, "x"]}', "column 'a' of 'f.json' holds both int64 and string"),
        ('{"a": {"b": [{"c": 1}, {"c": "x"}]}}', "column 'a.b' of 'f.json' holds both"),
    ],
)
def test_what_is_no_table_is_refused(text: str, says: str) -> None:
    with pytest.raises(DatasetError) as caught:
        _infer(text)
    assert says in caught.value.message


def test_a_file_that_the_engine_cannot_read_is_refused_when_it_is_loaded() -> None:
    with pytest.raises(DatasetError, match="begins with a byte order mark"):
        json_shape.infer(FileSample('{"a": 1}', True, has_mark=True), "auto", None, "f.json")
    with pytest.raises(DatasetError, match=r"does not start with '\['"):
        _infer('{"a": 1}', "array")


@given(st.integers(0, 40))
def test_a_sample_may_end_anywhere(end: int) -> None:
    text = '{"a": 1, "b": "x"}\n{"a": 2.5, "b": "y"}\n'
    found = _infer(text[:end], is_whole=False).schema
    assert found.names in ([], ["a", "b"])
    array = _infer(f"[{text.strip().replace(chr(10), ',')}]"[: end + 1], is_whole=False)
    assert array.is_array and array.schema.names in ([], ["a", "b"])
