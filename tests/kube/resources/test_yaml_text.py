from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.manifest.documents import document
from caraway_kube.resources import yaml_text


def read(text: str) -> Any:
    return document.parse(text, Path("caraway.yaml")).value


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(-1e9, 1e9).map(lambda number: round(number, 3))
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.from_regex(r"\A[a-z_]{1,8}\Z"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.from_regex(r"\A[a-z_]{1,8}\Z"), VALUES, min_size=1, max_size=4))
def test_a_written_value_is_read_back_unchanged(value: dict[str, Any]) -> None:
    assert read(yaml_text.dump(value)) == value


@pytest.mark.parametrize(
    "text", ["1e5", "0o17", "no", "007", "1.10", "~", "", "a: b", "a\nb\n", "  a\nb", "# a", "é"]
)
def test_strings_stay_strings(text: str) -> None:
    assert read(yaml_text.dump({"key": text})) == {"key": text}


def test_numbers_are_written_as_they_were_read() -> None:
    text = "id: 007\nrate: 1.10\n"
    assert yaml_text.dump(read(text)) == text
    mask = read(yaml_text.dump(read("mask: 0o17")))["mask"]
    assert (mask, mask.text) == (15, "0o17")


def test_multi_line_statements_stay_readable() -> None:
    assert yaml_text.dump({"sql": "SELECT 1\nFROM a\n"}) == "sql: |\n  SELECT 1\n  FROM a\n"
