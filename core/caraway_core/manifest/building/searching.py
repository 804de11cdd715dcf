"""Converts the checked shapes of search into values and applies the defaults."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from caraway_core.manifest.shape import dataset as datasets
from caraway_core.manifest.shape import search as shapes
from caraway_core.manifest.values import search_columns as values

Value = TypeVar("Value")

ENGINE = "caraway"
METRICS: tuple[values.Metric, ...] = ("cosine", "dot", "l2")
VECTOR_PARAMS = ("metric", "recall")
KEYWORD_PARAMS = ("language",)


def search_columns(
    columns: Iterable[datasets.ColumnSection],
    vectors: shapes.Vectors | None,
    full_text: shapes.FullTextSearch | None,
) -> values.SearchColumns:
    """Build the search settings of a dataset or view."""
    has_keywords = full_text is None or full_text.enabled
    return values.SearchColumns(
        embedded=tuple(
            values.EmbeddedColumn(column.name, each.from_, each.row_id, each.chunking)
            for column in columns
            for each in column.embeddings[:1]  # A rule refuses more than one.
        ),
        keywords=tuple(
            values.KeywordColumn(column.name, column.full_text_search.row_id)
            for column in columns
            if has_keywords and column.full_text_search and column.full_text_search.enabled
        ),
        vectors=_vectors(vectors),
        keyword_settings=_keywords(full_text.params if full_text else {}),
    )


def metric(text: str) -> values.Metric:
    """Read the metric of two vectors.

    Raises:
        ValueError: it is not a metric.
    """
    for known in METRICS:
        if text == known:
            return known
    raise ValueError(f"'{text}' is not one of: {', '.join(METRICS)}")


def recall(text: str) -> float:
    """Read the part of the nearest rows that an index must find.

    Raises:
        ValueError: it is not a number from 0.5 to 1.
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.5 <= value <= 1:
        raise ValueError(f"'{text}' is no number from 0.5 to 1; 1 finds the nearest rows always")
    return value


def language(text: str) -> str:
    """Read the language of texts.

    Raises:
        ValueError: its words cannot be reduced to stems.
    """
    if text not in values.LANGUAGES:
        raise ValueError(f"'{text}' is not one of: {', '.join(sorted(values.LANGUAGES))}")
    return text


def _vectors(shape: shapes.Vectors | None) -> values.VectorSettings:
    default = values.VectorSettings()
    if shape is None:
        return default
    return values.VectorSettings(
        shape.enabled,
        _read(shape.params, "metric", metric, default.metric),
        _read(shape.params, "recall", recall, default.recall),
    )


def _keywords(params: Mapping[str, str]) -> values.KeywordSettings:
    default = values.KeywordSettings()
    return values.KeywordSettings(_read(params, "language", language, default.language))


def _read(
    params: Mapping[str, str], name: str, read: Callable[[str], Value], default: Value
) -> Value:
    try:
        return read(params[name]) if name in params else default
    except ValueError:
        return default  # A rule refuses it.
