"""Server-sent events are the same however the bytes of a stream are cut."""

import itertools
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_ai.providers import event_streams
from caraway_ai.providers.event_streams import EventReader, ServerEvent

STREAM = (
    "\ufeff: a comment\n\n"
    "event: begun\ndata: {\"a\": 1}\n\n"
    "data:no space\r\n\r\n"
    "data: two\ndata: lines\nid: 5\nretry: 7\n\n"
    "event: nothing\n\n"
    "data\n\n"
    "data: é\U0001f600 : x\r\n\n"
    "data: without an end"
).encode()  # fmt: skip
EVENTS = [
    ServerEvent("begun", b'{"a": 1}'),
    ServerEvent("", b"no space"),
    ServerEvent("", b"two\nlines"),
    ServerEvent("", b""),
    ServerEvent("", "é\U0001f600 : x".encode()),
    ServerEvent("", b"without an end"),
]


def read(parts: Sequence[bytes]) -> list[ServerEvent]:
    reader = EventReader()
    found = [event for part in parts for event in reader.feed(part)]
    return [*found, *reader.rest()]


def cut(content: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({place % (len(content) + 1) for place in places})
    bounds = [0, *ends, len(content)]
    return [content[a:b] for a, b in itertools.pairwise(bounds)]


def test_the_stream_is_read() -> None:
    assert read([STREAM]) == EVENTS


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_where_it_is_cut_changes_nothing(places: list[int]) -> None:
    assert read(cut(STREAM, places)) == EVENTS


@given(st.lists(st.integers(0, 10_000), max_size=12), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_all_three_ends_of_lines_are_read(places: list[int], end: bytes) -> None:
    content = STREAM.replace(b"\r", b"").replace(b"\n", end)
    assert read(cut(content, places)) == EVENTS


def oracle(content: bytes) -> list[tuple[str, bytes]]:
    """Read a whole stream, line by line, as the standard says it."""
    found, event, data = [], "", list[bytes]()
    content = content.removeprefix("\ufeff".encode())
    for line in [*content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        if not line:
            if data:
                found.append((event, b"\n".join(data)))
            event, data = "", []
        elif line.startswith(b":"):
            continue
        else:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"event":
                event = value.decode("utf-8", "replace")
    return found


PIECES = st.sampled_from(
    [b"data:", b"data: ", b"event:", b"x", b":", b" ", b"\n", b"\n\n", b"\r", b"\r\n", b"\xff",
     "\ufeff".encode(), b"id: 1", b"datax: y"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25), st.lists(st.integers(0, 200), max_size=6))
def test_any_bytes_are_read_as_the_standard_says(parts: list[bytes], places: list[int]) -> None:
    content = b"".join(parts)
    found = [(each.event, each.data) for each in read(cut(content, places))]
    assert found == oracle(content)


def test_an_endless_event_is_refused() -> None:
    reader = EventReader()
    part = b"data: " + b"x" * (1 << 20) + b"\n"
    with pytest.raises(ValueError, match="longer than 16 MiB"):
        for _ in range(17):
            list(reader.feed(part))


def test_an_endless_line_is_refused() -> None:
    reader = EventReader()
    with pytest.raises(ValueError, match="longer than 16 MiB"):
        for _ in range(17):
            list(reader.feed(b"x" * (1 << 20)))


def test_only_the_size_of_one_event_counts() -> None:
    reader = EventReader()
    for _ in range(40):
        assert len(list(reader.feed(b"data: " + b"x" * (1 << 20) + b"\n\n"))) == 1


def test_comments_that_keep_a_connection_alive_are_no_part_of_an_event() -> None:
    reader = EventReader()
    pings = (b": " + b"x" * 1_000 + b"\n\n") * 1_000
    for _ in range(20):
        assert list(reader.feed(pings)) == []
    assert [event.data for event in reader.feed(b"data: x\n\n")] == [b"x"]


def test_many_events_in_one_part_are_not_one_that_is_too_long() -> None:
    part = (b"data: " + b"x" * (1 << 20) + b"\n\n") * 17
    assert len(list(EventReader().feed(part))) == 17


def test_a_long_line_in_small_parts_takes_the_time_of_its_length() -> None:
    # Joined at each part, these 12 MiB would be copied 50,000 times.
    reader = EventReader()
    for _ in range(50_000):
        assert not list(reader.feed(b"x" * 256))


async def test_events_of_an_iterator() -> None:
    async def parts() -> AsyncIterator[bytes]:
        for part in cut(STREAM, range(0, 400, 7)):
            yield part

    assert [event async for event in event_streams.events(parts())] == EVENTS
