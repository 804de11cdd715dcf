"""Messages that the client encodes, read by the generated classes."""

import pytest

from caraway import BrokenResponseError
from caraway.flight import messages as flight_sql
from tests.client import flight_sql as generated


@pytest.mark.parametrize("size", [0, 1, 127, 128, 20_000, 3_000_000])
def test_messages_are_those_of_the_protocol(size: int) -> None:
    text = "é" * size
    assert generated.content(flight_sql.create_request(text)).decode() == text
    assert generated.content(flight_sql.close_request(text.encode())).decode() == text
    assert generated.content(flight_sql.query_command(text.encode())).decode() == text


@pytest.mark.parametrize("size", [1, 127, 128, 70_000])
def test_handle_is_found_in_the_answer(size: int) -> None:
    handle = bytes(range(256)) * (size // 256 + 1)
    assert flight_sql.prepared_handle(generated.prepared_answer(handle[:size])) == handle[:size]


@pytest.mark.parametrize("cut", range(0, 60, 7))
def test_garbage_is_an_error(cut: int) -> None:
    whole = generated.prepared_answer(b"handle")
    for answer in (whole[:cut], b"\xff" * cut, b"\x08" + whole[:cut]):
        with pytest.raises(BrokenResponseError, match="no handle"):
            flight_sql.prepared_handle(answer)
