"""Chooses the number of partitions of a dataset."""

BYTES_A_BUCKET = 128 * 1024 * 1024
ROWS_A_BUCKET = 2_000_000
SMALL_BYTES = 16 * 1024 * 1024
SMALL_ROWS = 100_000
MAX_DEFAULT_BUCKETS = 1024


def default_buckets(size_bytes: int, rows: int, cores: int) -> int:
    """Choose a number of buckets: a power of two, so that buckets of datasets nest.

    It is chosen once, at the first load, and kept, because another number would move every row.
    `cores` is the number of cores of all executors.
    """
    if size_bytes <= SMALL_BYTES and rows <= SMALL_ROWS:
        return 1
    by_size = max(-(-size_bytes // BYTES_A_BUCKET), -(-rows // ROWS_A_BUCKET))
    # One bucket per core, unless that makes the buckets of a medium table too small.
    by_cores = min(cores, max(-(-size_bytes // SMALL_BYTES), -(-rows // SMALL_ROWS)))
    wanted = max(by_size, by_cores, 1)
    return int(min(1 << (wanted - 1).bit_length(), MAX_DEFAULT_BUCKETS))
