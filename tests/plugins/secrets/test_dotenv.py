"""Lines of secrets: every value is the one that was written, and none is in an error."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import CarawayError
from caraway_plugins.secrets import dotenv

VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets") / ".env"


@given(VALUES.filter(lambda text: not set(text) & set("\r\n")), VALUES)
def test_a_quoted_value_is_read_as_it_is(path: Path, value: str, after: str) -> None:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    comment = after.replace("\r", "").replace("\n", "")
    path.write_bytes(f'A="{escaped}" # {comment}\nB=1\n'.encode())
    assert dotenv.read(path) == {"A": value, "B": "1"}
    if "'" not in value:
        path.write_bytes(f"A='{value}'\r\nB=1".encode())
        assert dotenv.read(path) == {"A": value, "B": "1"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=#secret", "#secret"),
        ("A=se#cret", "se#cret"),
        ("A=se #cret", "se"),
        ("A= # nothing", ""),
        ("A=\t#nothing", ""),
        ("A = x ", "x"),
        ("A=a=b==", "a=b=="),
        ("export A=x", "x"),
        ("A=$B", "$B"),
        ("A='x' # y", "x"),
        ("A=x\u2028y", "x\u2028y"),
        ("A=x\x85y\x0cz", "x\x85y\x0cz"),
        ('A="l1\\nl2\\t\\\\"', "l1\nl2\t\\"),
    ],
)
def test_an_unquoted_value_ends_at_a_comment_only(path: Path, line: str, value: str) -> None:
    path.write_text(line)
    assert dotenv.read(path) == {"A": value}


@pytest.mark.parametrize(
    "line",
    ["hidden", "=hidden", "1A=hidden", 'A="hidden', "A='hid'den'", 'A="hidden"x', "A B=hidden"],
)
def test_a_wrong_line_is_named_without_its_content(path: Path, line: str) -> None:
    path.write_text(f"# first\n\n{line}\nZ=1\n")
    with pytest.raises(CarawayError) as caught:
        dotenv.read(path)
    assert f"{path}:3: the line is not NAME=value" in caught.value.message
    assert "hid" not in caught.value.message.replace(str(path), "")


def test_a_file_that_is_no_text_is_refused_without_its_bytes(path: Path) -> None:
    path.write_bytes(b"A=hidden\xff")
    with pytest.raises(CarawayError, match="it is not UTF-8 text") as caught:
        dotenv.read(path)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
