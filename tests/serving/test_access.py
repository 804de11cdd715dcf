import pytest

from caraway_core.ids import PUBLIC
from caraway_serving.access import ANONYMOUS, Keyring, presented_key

KEYS = Keyring([("reader", "ro"), ("writer", "rw"), ("", "rw"), ("root", "admin")])


def test_keys_identify_principal_and_rights() -> None:
    reader, writer = KEYS.find("reader"), KEYS.find("writer")
    assert reader is not None and not reader.may_write
    assert writer is not None and writer.may_write
    assert len({reader.id, writer.id, PUBLIC}) == 3
    assert "reader" not in reader.id


def test_administrators_write_and_see_the_rows_of_all() -> None:
    root, writer = KEYS.find("root"), KEYS.find("writer")
    assert root is not None and writer is not None
    assert (root.may_write, root.is_admin, root.viewer) == (True, True, None)
    assert (writer.is_admin, writer.viewer) == (False, writer.id)
    assert ANONYMOUS.viewer is None


@pytest.mark.parametrize("key", ["", "readers", "READER", "é"])
def test_unknown_keys_are_rejected(key: str) -> None:
    assert KEYS.find(key) is None


@pytest.mark.parametrize(
    ("x_api_key", "authorization", "key"),
    [
        ("k", None, "k"),
        (" k ", None, "k"),
        (" ", "Bearer k", "k"),
        (None, "Bearer k", "k"),
        (None, "bearer  k ", "k"),
        ("k", "Bearer other", "k"),
        ("", "Bearer k", "k"),
        ("", "", None),
        (None, "Bearer ", None),
        (None, "Basic azpr", None),
        (None, None, None),
    ],
)
def test_key_is_taken_from_either_header(
    x_api_key: str | None, authorization: str | None, key: str | None
) -> None:
    assert presented_key(x_api_key, authorization) == key
