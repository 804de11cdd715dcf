"""Counts and scores texts for a query, in a small segment for each batch of rows."""

import pyarrow as pa
import pyarrow.compute as pc

from caraway_engine.searching.text_requests import TextRequest
from caraway_search.text.segment import TextSegment


def scores(texts: pa.ListArray, request: pa.StringViewArray) -> pa.Array:
    """Score each row's texts, one for each column; NULL where the query does not find the row."""
    if not len(texts):
        return pa.nulls(0, pa.float64())
    text_request = _request(request)
    found = _segment(texts, text_request).scores(text_request.query, text_request.table_statistics)
    return pa.array(found.scores, pa.float64(), mask=~found.found)


def statistics(texts: pa.ListArray, request: pa.StringViewArray) -> tuple[int, ...]:
    """Return what a query needs to know of these rows; see `TextRequest.packed`."""
    text_request = _request(request)
    return text_request.packed(_segment(texts, text_request).statistics(text_request.query))


def _request(request: pa.StringViewArray) -> TextRequest:
    return TextRequest.decoded(request[0].as_py())


def _segment(texts: pa.ListArray, request: TextRequest) -> TextSegment:
    columns = request.columns
    lengths: object = pc.list_value_length(texts)
    if not pc.all(pc.equal(lengths, len(columns))).as_py():
        raise ValueError("the rows of a search have as many texts as its request has columns")
    parts = {name: pc.list_element(texts, place) for place, name in enumerate(columns)}
    return TextSegment.build(request.spec, parts)
