"""Files that commands write: whole or not at all, and never over files of others."""

import io
import os
from collections.abc import Generator
from pathlib import Path

import pytest
import typer

from caraway.cli import streams
from caraway_core.errors import CarawayError


def chunks(*parts: bytes) -> Generator[bytes, None, None]:
    yield from parts


def test_a_file_gets_its_name_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    with streams.open_output(target) as opened:
        opened.write(b"a")
        assert not target.exists()
    assert target.read_bytes() == b"a"
    assert os.listdir(tmp_path) == ["rows.csv"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "rows.csv"
    if exists:
        target.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), streams.open_output(target) as opened:
        opened.write(b"half")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == (["rows.csv"] if exists else [])
    assert not exists or target.read_bytes() == b"before"


def test_a_file_of_the_user_with_the_name_of_a_part_is_kept(tmp_path: Path) -> None:
    (tmp_path / "rows.csv.part").write_bytes(b"mine")
    with streams.open_output(tmp_path / "rows.csv") as opened:
        opened.write(b"a")
    assert (tmp_path / "rows.csv.part").read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == ["rows.csv", "rows.csv.part"]


def test_two_commands_that_write_one_file_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    with streams.open_output(target) as one, streams.open_output(target) as other:
        one.write(b"one" * 10)
        other.write(b"other")
    assert target.read_bytes() == b"one" * 10
    assert os.listdir(tmp_path) == ["rows.csv"]


def test_a_new_file_has_the_rights_that_the_user_gives_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with streams.open_output(tmp_path / "rows.csv") as opened:
            opened.write(b"a")
    finally:
        os.umask(before)
    assert (tmp_path / "rows.csv").stat().st_mode & 0o777 == 0o640


def test_a_long_name_is_written_all_the_same(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 255)
    with streams.open_output(target) as opened:
        opened.write(b"a")
    assert target.read_bytes() == b"a"


def test_what_a_link_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "there" / "rows.csv")
    with streams.open_output(tmp_path / "link.csv") as opened:
        opened.write(b"a")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "there" / "rows.csv").read_bytes() == b"a"


def test_devices_are_written_as_they_are(tmp_path: Path) -> None:
    with streams.open_output(Path("/dev/null")) as opened:
        opened.write(b"a")
    assert Path("/dev/null").is_char_device()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CarawayError, match=r"cannot write .*there is no directory"):
        with streams.open_output(tmp_path / "none" / "rows.csv"):
            pass


@pytest.mark.parametrize(
    ("parts", "is_binary", "expected"),
    [
        ((b"a", b"b"), False, b"ab\n"),
        ((b"a\n",), False, b"a\n"),
        ((b"a\n", b""), False, b"a\n"),
        ((), False, b""),
        ((b"a",), True, b"a"),
    ],
)
def test_text_ends_with_one_line_break(
    parts: tuple[bytes, ...], is_binary: bool, expected: bytes
) -> None:
    to = io.BytesIO()
    streams.write_result(chunks(*parts), to, is_binary=is_binary)
    assert to.getvalue() == expected


def test_a_writer_that_fails_closes_the_result() -> None:
    class Full(io.BytesIO):
        def write(self, _data: object) -> int:
            raise OSError(28, "No space left on device")

    source = chunks(b"a", b"b")
    with pytest.raises(OSError, match="No space"):
        streams.write_result(source, Full(), is_binary=False)
    with pytest.raises(StopIteration):
        next(source)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (None, {}),
        (["a=1"], {"a": 1}),
        (["a=1=2"], {"a": "1=2"}),
        (["a="], {"a": ""}),
        (['a="1"', "b=null", "c=[1]", "d=x y"], {"a": "1", "b": None, "c": [1], "d": "x y"}),
    ],
)
def test_parameters_are_json_or_else_text(
    texts: list[str] | None, expected: dict[str, object]
) -> None:
    assert streams.parse_params(texts) == expected


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_a_parameter_without_a_name_is_a_usage_error(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        streams.parse_params([text])


def test_a_statement_comes_from_one_place(tmp_path: Path) -> None:
    file = tmp_path / "query.sql"
    file.write_text("SELECT 'ä'", encoding="utf-8")
    assert streams.read_query(None, file) == "SELECT 'ä'"
    assert streams.read_query("SELECT 1", None) == "SELECT 1"
    with pytest.raises(typer.BadParameter, match="not both"):
        streams.read_query("SELECT 1", file)
