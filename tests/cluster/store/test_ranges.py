import pytest

from caraway_cluster.store.ranges import Part, parse

WHOLE = Part(0, 10, is_whole=True)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", Part(0, 1)),
        ("bytes=2-5", Part(2, 6)),
        ("bytes=2-", Part(2, 10)),
        ("bytes=-3", Part(7, 10)),
        ("bytes=-30", Part(0, 10)),
        ("bytes=9-99", Part(9, 10)),
        ("bytes=10-", None),
        ("bytes=-0", None),
        ("", WHOLE),
        ("bytes=-", WHOLE),
        ("bytes=5-2", WHOLE),
        ("bytes=0-1,3-4", WHOLE),
        ("rows=0-1", WHOLE),
        ("bytes=0-" + "9" * 40, WHOLE),
    ],
)
def test_range_names_a_part(header: str, expected: Part | None) -> None:
    assert parse(header, 10) == expected
