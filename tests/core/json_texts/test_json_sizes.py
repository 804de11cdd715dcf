import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.json_texts import json_sizes
from caraway_core.json_texts.json_sizes import JsonTooDeepError, JsonTooLargeError

_TEXTS = st.text(st.sampled_from('[]{},:"\\ aé'), max_size=8)
_SCALARS = st.none() | st.booleans() | st.integers() | _TEXTS
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXTS, inner, max_size=5),
    max_leaves=30,
)


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    if isinstance(value, list):
        return 1 + sum(map(_count, value))
    return 1


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


@given(_VALUES, st.integers(1, 12), st.booleans())
def test_values_and_nesting_are_those_of_the_parsed_text(
    value: Any, piece_bytes: int, is_ascii: bool
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=1).encode()
    empties = text.count(b"[]") + text.count(b"{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_sizes, "_PIECE_BYTES", piece_bytes)
        count, depth = _count(value), _depth(value)
        # An empty list counts as if it had a value.
        assert count <= json_sizes.check(text, 1_000_000) <= 1_000_000
        json_sizes.check(text, count + empties, depth)
        if count > 1:
            with pytest.raises(JsonTooLargeError):
                json_sizes.check(text, count - 1)
        if depth:
            with pytest.raises(JsonTooDeepError):
                json_sizes.check(text, 1_000_000, depth - 1)


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"[]," * 1_000_000 + b"[]]",
        b"{" + b'"a":1,' * 1_000_000 + b'"b":2}',
        b"[" + b'",",' * 1_000_000 + b"1]",
        b'["' + b"\\\\" * 1_000_000 + b'",' + b"1," * 2_000 + b"1]",
        b'["' + b'\\"' * 1_000_000 + b'",' + b"1," * 2_000 + b"1]",
    ],
)
def test_long_text_with_many_values_is_refused(text: bytes) -> None:
    with pytest.raises(JsonTooLargeError, match="more than 1000 values"):
        json_sizes.check(text, 1000)


def test_commas_and_brackets_in_strings_are_no_values() -> None:
    text = json.dumps({"sql": "SELECT '[[[[[', 1, 2, 3, 4 -- \\" * 100_000}).encode()
    assert json_sizes.check(text, 3, 1) == 2


@pytest.mark.parametrize("text", [b"", b"[", b"]]]]", b'"', b"\\", b'[\\",,,', b"\xff\xfe", b"}}}"])
def test_what_is_no_json_passes(text: bytes) -> None:
    json_sizes.check(text, 100, 100)
    json_sizes.check(text, 100, 3)
