import os
from pathlib import Path

import pytest

from caraway_core.process import cores

MACHINE = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["100000 100000"], 1),
        (["50000 100000"], 1),
        (["1000 100000"], 1),
        (["99900000 100000"], MACHINE),
        (["max 100000"], MACHINE),
        (["100000", "100000"], 1),
        (["-1", "100000"], MACHINE),
        (["0 0"], MACHINE),
        (["other"], MACHINE),
        ([], MACHINE),
    ],
)
def test_quota_of_the_cgroup_counts(tmp_path: Path, texts: list[str], expected: int) -> None:
    files = []
    for number, text in enumerate(texts):
        files.append(tmp_path / str(number))
        files[-1].write_text(text + "\n")
    assert cores.available([files or [tmp_path / "none"]]) == expected


def test_part_of_a_core_counts_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: range(64))
    (tmp_path / "max").write_text("250000 100000\n")
    assert cores.available([[tmp_path / "max"]]) == 3
    assert cores.available([[tmp_path / "none"]]) == 64
