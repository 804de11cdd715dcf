import base64
import stat
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_management.sealing import keys
from caraway_management.sealing.keys import GivenKeys, KeyFile

KEY = base64.b64encode(bytes(32)).decode()


def test_a_key_file_is_made_once_and_only_for_this_user(tmp_path: Path) -> None:
    file = tmp_path / "management.keys"
    KeyFile(file).make()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    made = KeyFile(file).load()
    KeyFile(file).make()
    assert KeyFile(file).load() == made
    assert [each.name for each in tmp_path.iterdir()] == ["management.keys"]


def test_a_key_that_is_added_becomes_the_current_one(tmp_path: Path) -> None:
    file = tmp_path / "management.keys"
    KeyFile(file).make()
    first = KeyFile(file).load()
    added = KeyFile(file).add()
    second = KeyFile(file).load()
    assert second.current_id == added != first.current_id
    assert second.keys[first.current_id] == first.keys[first.current_id]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_sources_are_tried_in_order(tmp_path: Path) -> None:
    given = {keys.ENVIRONMENT: f"old:{KEY} new:{KEY}"}
    source = keys.source_of(tmp_path, None, given)
    assert isinstance(source, GivenKeys)
    assert source.load().current_id == "new"
    named = tmp_path / "named"
    named.write_text(f"# of the test\n\nmine:{KEY}\n")
    assert keys.source_of(tmp_path, named, given).load().current_id == "mine"
    assert not (tmp_path / keys.FILE_NAME).exists()
    assert keys.source_of(tmp_path, None, {}).load().keys
    assert (tmp_path / keys.FILE_NAME).exists()
    with pytest.raises(CarawayError, match="set --key-file"):
        keys.source_of(None, None, {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no keys"),
        ("a", "line 1 of the file is not a key"),
        (f"a:{KEY}\nb:{KEY[4:]}", "line 2 of the file is not a key"),
        ("a:not base64!", "line 1"),
        (f"a b:{KEY}", "line 1"),
        (f"a:{KEY}\na:{KEY}", "the key 'a' twice"),
    ],
)
def test_wrong_keys_are_refused_without_their_value(text: str, problem: str) -> None:
    with pytest.raises(CarawayError, match=problem) as failure:
        keys.parse(text, "the file")
    assert KEY[:20] not in str(failure.value)


def test_a_key_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CarawayError, match="cannot read the key file: No such file"):
        KeyFile(tmp_path / "none").load()
    with pytest.raises(CarawayError, match="cannot write the key file"):
        KeyFile(tmp_path / "no" / "folder").make()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(CarawayError, match="no text"):
        KeyFile(tmp_path / "binary").load()


def test_keys_do_not_show_in_their_repr() -> None:
    assert "bytes" not in repr(keys.parse(f"a:{KEY}", "x"))
    assert "\\x00" not in repr(keys.parse(f"a:{KEY}", "x"))
