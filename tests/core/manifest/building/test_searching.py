"""Settings of searches as a manifest writes them."""

import pytest

from caraway_core.manifest.building import searching
from caraway_core.manifest.shape.search import FullTextSearch, Vectors
from caraway_core.manifest.values.search_columns import KeywordSettings, VectorSettings


@pytest.mark.parametrize("text", ["cosine", "dot", "l2"])
def test_metrics(text: str) -> None:
    assert searching.metric(text) == text


@pytest.mark.parametrize("text", ["", "Cosine", "l1", "cosine "])
def test_other_metrics_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not one of: cosine, dot, l2"):
        searching.metric(text)


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), ("1", 1.0), ("9e-1", 0.9)])
def test_recalls(text: str, value: float) -> None:
    assert searching.recall(text) == value


@pytest.mark.parametrize("text", ["", "0.49", "1.01", "-1", "nan", "inf", "all", "90%"])
def test_other_recalls_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no number from 0\.5 to 1"):
        searching.recall(text)


def test_languages_are_those_with_stems() -> None:
    assert searching.language("german") == "german"
    for text in ("", "German", "de", "klingon"):
        with pytest.raises(ValueError, match=r"is not one of: .*german"):
            searching.language(text)


def test_params_replace_defaults() -> None:
    columns = searching.search_columns(
        [],
        Vectors(enabled=True, params={"metric": "l2", "recall": "1"}),
        FullTextSearch(enabled=True, params={"language": "german"}),
    )
    assert (columns.vectors.metric, columns.vectors.recall) == ("l2", 1.0)
    assert columns.keyword_settings.language == "german"


def test_params_that_rules_refuse_leave_defaults() -> None:
    columns = searching.search_columns(
        [],
        Vectors(enabled=True, params={"metric": "l1", "recall": "2"}),
        FullTextSearch(enabled=True, params={"language": "klingon"}),
    )
    assert columns.vectors == VectorSettings(True)
    assert columns.keyword_settings == KeywordSettings()
