import pytest

from caraway_acceleration.recipes.partitioning import default_buckets

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size_mib", "rows", "cores", "count"),
    [
        (0, 0, 8, 1),
        (16, 100_000, 64, 1),
        (20, 150_000, 64, 2),
        (1024, 1_000_000, 4, 8),
        (1024, 1_000_000, 12, 16),
        (1024, 100_000_000, 4, 64),
        (100 * 1024, 6_000_000, 1, 1024),
        (1024 * 1024, 10**10, 1, 1024),
    ],
)
def test_buckets_are_chosen_by_size_and_cores(
    size_mib: int, rows: int, cores: int, count: int
) -> None:
    assert default_buckets(size_mib * MIB, rows, cores) == count
