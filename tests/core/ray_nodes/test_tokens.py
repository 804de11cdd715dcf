"""The token file of a cluster is read as text, or the error says why it is refused."""

import os
import stat
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_core.ray_nodes import tokens


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "is empty"), (b" \n\t\n", "is empty"), (b"\xff\xfe\x00", "is no text")],
)
def test_a_file_without_a_token(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(CarawayError, match=told) as caught:
        tokens.read_token(path)
    assert str(path) in caught.value.message


def test_what_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(CarawayError, match="Is a directory; set --token-file"):
        tokens.read_token(tmp_path)
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(CarawayError, match="cannot write the token file"):
        tokens.make_token(blocked / "inner" / "token")


def test_a_token_is_made_once_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "new" / "token"
    tokens.make_token(path)
    first = tokens.read_token(path)
    assert len(first) == 64 and stat.S_IMODE(path.stat().st_mode) == 0o600
    tokens.make_token(path)
    assert tokens.read_token(path) == first
    assert os.listdir(path.parent) == ["token"]
    # White space that an editor adds does not belong to the token.
    path.write_text(f"\n {first} \r\n")
    assert tokens.read_token(path) == first
