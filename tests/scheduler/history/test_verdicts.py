"""The file of verdicts."""

import json
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_scheduler.history.verdicts import VerdictFile


def lines(path: Path) -> list[int]:
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


def test_a_full_file_becomes_the_one_before(tmp_path: Path) -> None:
    kept = VerdictFile(tmp_path / "verdicts.jsonl", most_bytes=25)
    for number in range(7):
        kept.add({"n": number})
    # A line has nine bytes.
    assert (lines(kept.before), lines(kept.path)) == ([4, 5], [6])
    assert kept.before.name == "verdicts.before.jsonl"


def test_any_text_is_one_line(tmp_path: Path) -> None:
    kept = VerdictFile(tmp_path / "verdicts.jsonl")
    kept.add({"n": 1, "text": 'a\nb\u2028"\udcff☃'})
    kept.add({"n": 2})
    assert lines(kept.path) == [1, 2]


def test_a_disk_that_fails_is_said_without_its_path(tmp_path: Path) -> None:
    kept = VerdictFile(tmp_path / "gone" / "verdicts.jsonl")
    with pytest.raises(CarawayError, match="was not kept") as failed:
        kept.add({"n": 1})
    assert str(tmp_path) not in failed.value.message
