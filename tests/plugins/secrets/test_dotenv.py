"""Lines of secrets: every value is the one that was written, and none is in an error."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import CarawayError
from caraway_plugins.secrets import dotenv
from caraway_plugins.secrets.dotenv import DotEnv
from caraway_plugins.secrets.environment import Environment

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


def test_dotenv_lines(tmp_path: Path) -> None:
    (tmp_path / "s.env").write_text(
        '# comment\n\nexport A = a b # note\nB=\'x # y\'\nC="l1\\nl2 \\"q\\"" # c\n'
        "D=\nE=a#b\nF='$A'\nA2=1\nA2=2\n"
    )
    store = DotEnv({"path": "s.env"}, tmp_path, {})
    values = {name: store.get(name) for name in ("A", "B", "C", "D", "E", "F", "A2", "a")}
    assert values == {
        "A": "a b",
        "B": "x # y",
        "C": 'l1\nl2 "q"',
        "D": "",
        "E": "a#b",
        "F": "$A",
        "A2": "2",
        "a": None,
    }


@pytest.mark.parametrize("line", ["hunter2", "A='hunter2", 'A="hunter2', "=hunter2", "1A=hunter2"])
def test_invalid_dotenv_line_is_reported_without_its_text(tmp_path: Path, line: str) -> None:
    (tmp_path / ".env").write_text(f"A=1\n{line}\n")
    with pytest.raises(CarawayError, match=r"\.env:2: the line is not NAME=value") as caught:
        DotEnv({}, tmp_path, {})
    assert "hunter2" not in str(caught.value)


def test_dotenv_file_must_exist_and_be_text(tmp_path: Path) -> None:
    with pytest.raises(CarawayError, match=r"the file '.*s\.env' does not exist; create it"):
        DotEnv({"path": "s.env"}, tmp_path, {})
    (tmp_path / ".env").write_bytes(b"A=\xff")
    with pytest.raises(CarawayError, match="cannot be read: it is not UTF-8 text"):
        Environment({}, tmp_path, {})
