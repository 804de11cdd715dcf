import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_plugins.sources import params
from caraway_plugins.sources.params import Params

ODD = st.text(st.sampled_from("0159.smeE+-_ \u0661\u00b2\uff11nai")) | st.integers().map(str)


@given(ODD | st.just("9" * 5000))
def test_a_count_is_a_number_above_zero_or_an_error(text: str) -> None:
    try:
        found = Params({"n": text}).count("n")
    except DatasetError as exc:
        assert "give a number above zero" in exc.message
    else:
        assert (found is None) == (text == "")
        assert found is None or (found > 0 and text.isascii() and int(text) == found)


@given(ODD | st.just("9" * 500))
def test_a_duration_is_a_positive_time_or_an_error(text: str) -> None:
    try:
        found = Params({"t": text}).seconds("t", 7.0)
    except DatasetError as exc:
        assert "give a duration such as 30s" in exc.message
    else:
        assert math.isfinite(found) and found > 0
        assert text or found == 7.0


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("30s", 30), ("500ms", 0.5), ("2m", 120), ("1.5s", 1.5)]
)
def test_units_of_durations(text: str, seconds: float) -> None:
    assert Params({"t": text}).seconds("t", 0.1) == seconds


@pytest.mark.parametrize("text", ["xy", "\u00e9", "\\x", "tabs"])
def test_a_character_is_one_of_ascii(text: str) -> None:
    with pytest.raises(DatasetError, match="give one ASCII character"):
        Params({"c": text}).character("c")
    assert Params({"c": "\\t"}).character("c") == Params({"c": "TAB"}).character("c") == "\t"


@pytest.mark.parametrize(
    "values",
    [
        {"csv_delimiter": '"'},
        {"csv_quote": ","},
        {"csv_delimiter": "\n"},
        {"csv_quote": "\r"},
        {"csv_delimiter": "|", "csv_quote": "|"},
    ],
)
def test_characters_that_cannot_be_told_apart_are_refused(values: dict[str, str]) -> None:
    with pytest.raises(DatasetError, match="csv_delimiter and csv_quote must be two characters"):
        params.dialect(Params(values), is_tsv=False)


def test_params_of_tsv_files_come_first() -> None:
    values = {"csv_delimiter": ";", "csv_has_header": "false", "tsv_has_header": "true"}
    plain, tabs = (params.dialect(Params(values), is_tsv=each) for each in (False, True))
    assert (plain.delimiter, plain.has_header) == (";", False)
    assert (tabs.delimiter, tabs.has_header) == ("\t", True)


def test_an_unknown_param_has_a_suggestion() -> None:
    with pytest.raises(DatasetError, match="csv_delimiter"):
        params.checked("file", {"csv_delimeter": ";"})
    for flag in ("yes", "1", "tru"):
        with pytest.raises(DatasetError, match="set it to true or false"):
            Params({"f": flag}).flag("f", True)
