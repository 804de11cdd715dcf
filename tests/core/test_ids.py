"""Ids are well formed, random, and drawn once, also by threads and processes that are forked."""

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from caraway_core import ids


def test_query_ids_are_random_uuids() -> None:
    drawn = [ids.new_query_id() for _ in range(2_000)]
    assert len(set(drawn)) == len(drawn)
    for text in drawn:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 4, uuid.RFC_4122)
    assert {text[19] for text in drawn} == set("89ab")


@pytest.mark.parametrize("size_bytes", [1, 8, 16])
def test_random_digits_have_the_wanted_length(size_bytes: int) -> None:
    digits = ids.random_hex(size_bytes)
    assert len(bytes.fromhex(digits)) == size_bytes


def test_threads_share_no_digits() -> None:
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda _: ids.random_hex(), range(5_000)))
    assert len(set(drawn)) == len(drawn)


def test_a_forked_process_draws_its_own() -> None:
    ids.random_hex()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, "".join(ids.random_hex() for _ in range(100)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    theirs = {text[start : start + 32] for start in range(0, len(text), 32)}
    ours = {ids.random_hex() for _ in range(1_000)}
    assert len(theirs) == 100 and not theirs & ours


def test_job_ids_sort_by_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(0, 10**15, 10**13))
    monkeypatch.setattr("time.time_ns", lambda: next(moments))
    drawn = [ids.new_job_id() for _ in range(50)]
    assert drawn == sorted(drawn)
