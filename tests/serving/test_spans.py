"""Trace ids of the caller are continued if they are well formed, and replaced if not."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.ids import PrincipalId
from caraway_serving import spans
from caraway_serving.spans import Span

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "header",
    [
        f"00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-00",
        f"cc-{TRACE}-{PARENT}-01",
        f"cc-{TRACE}-{PARENT}-01-what-the-future-brings",
    ],
)
def test_trace_of_the_caller_is_continued(header: str) -> None:
    span = spans.start(header)
    assert (span.trace_id, span.parent_span_id) == (TRACE, PARENT)
    assert span.span_id not in (PARENT, "0" * 16)
    assert span.principal is None


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-zz",
        f"00{TRACE}{PARENT}01",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE[:-1]}-{PARENT}-01",
        f"00-{TRACE}a-{PARENT}-01",
        f"00-{TRACE}-{PARENT[:-1]}-01",
        f" 00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01, 00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-012",
        f"cc-{TRACE}-{PARENT}-01more",
        f"00-{TRACE}-{PARENT}-01\n",
        f"0-{TRACE}-{PARENT}-01",
        f"\u0660\u0660-{TRACE}-{PARENT}-01",
        "00-" + "\u00e9" * 32 + f"-{PARENT}-01",
    ],
)
def test_anything_else_begins_a_trace(header: str | None) -> None:
    span = spans.start(header)
    assert span.trace_id != TRACE and span.parent_span_id is None
    assert re.fullmatch("[0-9a-f]{32}", span.trace_id)


@settings(max_examples=60, derandomize=True)
@given(
    st.text(max_size=80)
    | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", fullmatch=True)
)
def test_any_header_gives_a_span_whose_own_header_is_understood(header: str) -> None:
    span = spans.start(header)
    again = spans.start(span.traceparent)
    assert (again.trace_id, again.parent_span_id) == (span.trace_id, span.span_id)
    assert len(span.traceparent) == 55


def test_child_keeps_trace_and_principal_and_names_its_parent() -> None:
    span = Span(TRACE, PARENT, None, PrincipalId("ada"))
    child, other = span.child(), span.child()
    assert (child.trace_id, child.parent_span_id, child.principal) == (TRACE, PARENT, "ada")
    assert len({span.span_id, child.span_id, other.span_id}) == 3


def test_spans_of_their_own_never_share_ids() -> None:
    made = [spans.start(None) for _ in range(100)]
    assert len({span.trace_id for span in made}) == len({span.span_id for span in made}) == 100
