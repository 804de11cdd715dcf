from pathlib import Path

import pytest

from caraway_core.manifest.texts import memory, units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("1d", 86400),
        ("1h 30m", 5400),
        (30, 30),
        (1.5, 1.5),
        ("2", 2),
        ("0s", 0),
        ("1.5H", 5400),
        (" 2w ", 1209600),
    ],
)
def test_durations(text: object, expected: float) -> None:
    assert units.seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "s", "soon", "-1s", -1, "1x", "1s!", True, None, [], "nan"])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="is not a duration; write for example 30s"):
        units.seconds(text)


@pytest.mark.parametrize("text", ["99999999999d", 10**17, 1e17])
def test_endless_durations_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is"):
        units.seconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("128MiB", 128 << 20),
        ("1GB", 10**9),
        ("512k", 512000),
        ("512ki", 512 << 10),
        (7, 7),
        ("7", 7),
        ("7b", 7),
        ("1.5 KiB", 1536),
        ("2 TiB", 2 << 40),
    ],
)
def test_sizes(text: object, expected: int) -> None:
    assert units.size_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "MiB", "-1", -1, "1xb", True, "1 2", "99999PiB", 10**400])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match=r"is not a size|is more than"):
        units.size_bytes(text)


def test_memory_is_the_smaller_of_machine_and_cgroup(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("1048576\n")
    assert memory.total_bytes([limit]) == 1048576
    limit.write_text("max\n")
    assert memory.total_bytes([limit]) == memory.total_bytes([tmp_path / "absent"]) > 1048576


def test_memory_limits_are_sizes_or_shares() -> None:
    assert memory.limit_bytes("1GiB") == 1 << 30
    assert memory.limit_bytes("50%") == memory.total_bytes() // 2
    with pytest.raises(ValueError, match="must be more than 0 bytes"):
        memory.limit_bytes(0)
    with pytest.raises(ValueError, match="write 1% to 100%"):
        memory.limit_bytes("0%")
