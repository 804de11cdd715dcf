import pytest

from caraway_cluster.store.ranges import ByteRange, parse_range

WHOLE = ByteRange(0, 10, is_whole=True)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", ByteRange(0, 1)),
        ("bytes=2-5", ByteRange(2, 6)),
        ("bytes=2-", ByteRange(2, 10)),
        ("bytes=-3", ByteRange(7, 10)),
        ("bytes=-30", ByteRange(0, 10)),
        ("bytes=9-99", ByteRange(9, 10)),
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
def test_range_header_selects_bytes(header: str, expected: ByteRange | None) -> None:
    assert parse_range(header, 10) == expected
