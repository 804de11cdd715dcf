import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_serving.errors import RefusedRequestError
from caraway_serving.negotiation import MEDIA_TYPES, STORED_TYPES, representation


@pytest.mark.parametrize(
    ("accept", "format_", "media_type"),
    [
        (None, "json", "application/json"),
        ("", "json", "application/json"),
        ("*/*", "json", "application/json"),
        ("text/csv", "csv", "text/csv"),
        ("text/*", "csv", "text/csv"),
        ("TEXT/PLAIN", "text", "text/plain"),
        ("text/csv;q=0.5, text/plain;q=0.9", "text", "text/plain"),
        ("text/csv, */*;q=0.1", "csv", "text/csv"),
        ("*/*, text/csv", "csv", "text/csv"),
        ("application/json;q=0, */*", "csv", "text/csv"),
        ("image/png, application/json;q=0.1", "json", "application/json"),
        ("application/vnd.spiceai.sql.v1+json", "versioned", "application/vnd.spiceai.sql.v1+json"),
        ("application/vnd.service.sql.v1+json", "versioned", "application/vnd.service.sql.v1+json"),
        ("application/vnd.apache.arrow.stream", "arrow", "application/vnd.apache.arrow.stream"),
        ("application/x-ndjson", "ndjson", "application/x-ndjson"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "json", "application/json"),
    ],
)
def test_highest_q_value_wins(accept: str | None, format_: str, media_type: str) -> None:
    choice = representation(accept)
    assert (choice.format, choice.media_type) == (format_, media_type)


@pytest.mark.parametrize("accept", ["image/png", "application/json;q=0", "text/csv;q=nonsense"])
def test_nothing_acceptable_is_an_error_that_lists_what_is(accept: str) -> None:
    with pytest.raises(RefusedRequestError, match="text/csv"):
        representation(accept)


def test_stored_answers_are_also_parquet_but_not_versioned() -> None:
    parquet = representation("application/vnd.apache.parquet", STORED_TYPES)
    assert (parquet.format, parquet.content_type) == ("parquet", "application/vnd.apache.parquet")
    assert representation("*/*", STORED_TYPES).format == "json"
    for accept in ("application/vnd.caraway.sql.v1+json", "application/vnd.x.sql.v1+json"):
        with pytest.raises(RefusedRequestError, match="parquet"):
            representation(accept, STORED_TYPES)


@pytest.mark.parametrize("q", ["nan", "-nan", "NaN", "-inf", "-1", "0", "0.000", "", " "])
def test_weight_that_is_no_number_above_zero_refuses_its_type(q: str) -> None:
    accept = f"text/csv;q=0.1, application/jsonl;q={q}, text/plain;q=0.9"
    assert representation(accept).format == "text"
    with pytest.raises(RefusedRequestError):
        representation(f"application/jsonl;q={q}")


WEIGHTS = st.sampled_from(["0", "0.001", "0.5", "1", "nan", "inf", "-1", "x"])
RANGES = st.lists(
    st.tuples(
        st.sampled_from([*MEDIA_TYPES, "*/*", "text/*", "image/png", "application/*"]), WEIGHTS
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda each: each[0],
)


def weight(written: str) -> float:
    odd = {"nan": 0.0, "x": 0.0, "-1": 0.0, "inf": 1.0}
    return odd[written] if written in odd else float(written)


@settings(max_examples=150, derandomize=True)
@given(RANGES)
def test_what_is_chosen_is_accepted_and_nothing_named_outweighs_it(
    ranges: list[tuple[str, str]],
) -> None:
    weights = {name: weight(q) for name, q in ranges}
    try:
        chosen = representation(", ".join(f"{name};q={q}" for name, q in ranges))
    except RefusedRequestError as exc:
        assert exc.status == 406
        assert all(weights[name] == 0 for name in weights if name in MEDIA_TYPES)
        return
    assert weights.get(chosen.media_type, 1) > 0
    covering = [
        weights[name]
        for name in (chosen.media_type, chosen.media_type.split("/")[0] + "/*", "*/*")
        if name in weights
    ]
    named = [q for name, q in weights.items() if name in MEDIA_TYPES]
    assert covering and max(covering) >= max(named, default=0)


@settings(max_examples=100, derandomize=True)
@given(st.text(max_size=40))
def test_any_header_is_a_choice_or_a_refusal(header: str) -> None:
    try:
        assert representation(header).format in MEDIA_TYPES.values()
    except RefusedRequestError as exc:
        assert exc.status == 406
