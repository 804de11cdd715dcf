"""Limits of memory are sizes or shares, and those of a cgroup count where they are smaller."""

from pathlib import Path

import pytest

from caraway_core.manifest.texts import memory


@pytest.mark.parametrize(
    "content", ["max\n", "", "abc", "-5", "9223372036854771712", "12.5", "٣", "²", "0x10"]
)
def test_a_limit_that_says_nothing_is_left_out(tmp_path: Path, content: str) -> None:
    machine = memory.total_bytes([])
    path = tmp_path / "memory.max"
    path.write_text(content)
    assert memory.total_bytes([path, tmp_path / "none"]) == machine


def test_the_smallest_limit_counts(tmp_path: Path) -> None:
    for name, content in (("a", "3000000\n"), ("b", "2000000"), ("c", "max")):
        (tmp_path / name).write_text(content)
    assert memory.total_bytes([tmp_path / name for name in "abc"]) == 2_000_000


@pytest.mark.parametrize("share", ["100%", "50 %", " 12.5% ", "0.001%"])
def test_shares(share: str) -> None:
    whole = memory.total_bytes()
    part = float(share.strip().rstrip("%")) / 100
    assert memory.limit_bytes(share) == int(whole * part)


@pytest.mark.parametrize(
    ("value", "told"),
    [("0%", "not a share"), ("101%", "not a share"), ("100.5%", "not a share"), ("-5%", "no"),
     ("5 %%", "not a size"), ("nan%", "not a size"), ("0", "more than 0"), ("0.4", "more than 0"),
     (0, "more than 0"), (None, "not a size"), (True, "not a size"), ([], "not a size"),
     ("1e3%", "not a size"), ("\u0665%", "not a size")],
)  # fmt: skip
def test_what_is_no_limit(value: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        memory.limit_bytes(value)
