import pytest

from caraway_core.manifest import split_key


@pytest.mark.parametrize(
    ("written", "key", "access"),
    [
        ("k", "k", "ro"),
        ("k:ro", "k", "ro"),
        ("k:rw", "k", "rw"),
        ("k:admin", "k", "admin"),
        ("k \n", "k", "ro"),
        ("k\n:rw", "k", "rw"),
        (" k:admin\n", "k", "admin"),
        (" \n", "", "ro"),
        (" :rw", "", "rw"),
        ("a b", "a b", "ro"),
    ],
)
def test_key_is_split_from_its_suffix(written: str, key: str, access: str) -> None:
    assert split_key(written) == (key, access)
