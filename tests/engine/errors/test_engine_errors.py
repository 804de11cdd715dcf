"""Texts of engine errors: the owner of the fault, and the text that users see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_engine.errors import engine_errors
from caraway_engine.errors.engine_errors import FaultOwner

STATEMENT, SOURCE, ENGINE = FaultOwner.STATEMENT, FaultOwner.SOURCE, FaultOwner.ENGINE


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", ENGINE),
        ("something", ENGINE),
        ("Arrow error: something", ENGINE),
        ("Arrow error: Cast error: Cannot cast string 'x' to value of Int64 type", STATEMENT),
        ("Error during planning: something", STATEMENT),
        ('SQL error: ParserError("Expected: something")', STATEMENT),
        ("Execution error: Arrow error: Divide by zero error", STATEMENT),
        ("Arrow error: Parquet argument error: Parquet error: EOF", SOURCE),
        ("Object Store error: Generic S3 error: something", SOURCE),
        ("External error: Generic LocalFileSystem error: something", SOURCE),
        ("Internal error: something", ENGINE),
        # Quoted text comes from the user, and does not decide the fault.
        ("Error during planning: 'Generic S3 error: x'", STATEMENT),
        ("Error during planning: 'Internal error: x'", STATEMENT),
    ],
)
def test_the_kinds_before_a_text_decide_whose_fault_it_is(text: str, fault: FaultOwner) -> None:
    assert engine_errors.read(text).fault is fault


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("", ""),
        ("  a  ", "a"),
        ("reading /srv/data/orders.parquet failed", "reading orders.parquet failed"),
        ("reading file:///srv/data/orders.parquet failed", "reading orders.parquet failed"),
        ("reading srv/data/orders.parquet failed", "reading orders.parquet failed"),
        ("path='/srv/a=1/b=2/x.csv'", "path='x.csv'"),
        ("at /srv/data/", "at"),
        ("(/srv/a-b/c+d/e~f/g%20h/i@j)", "(i@j)"),
        ("--flag/home/user/x.csv", "x.csv"),
        ("=/home/user/x.csv", "x.csv"),
        ("a/b", "a/b"),
        ("/a", "/a"),
        ("1/2/3", "3"),
        ("see https://host:1/a/b?c=d, then", "see a remote file, then"),
        ("see s3://bucket/a/b.parquet", "see a remote file"),
        ("at s3a://b/c and gs://d and az://e and abfss://f@g/h", "at a remote file and a remote "
         "file and a remote file and a remote file"),
        ("memory://x/y", "a remote file"),
        ("Execution error: Arrow error: told", "told"),
        ("told: Ident { value: \"x\", quote_style: None }", "told"),
    ],
)  # fmt: skip
def test_a_text_tells_neither_folders_nor_insides(text: str, plain: str) -> None:
    assert engine_errors.plain(text) == plain


@given(
    st.lists(st.sampled_from("abz09._@%+=~-"), min_size=1, max_size=5).map("".join),
    st.lists(st.text(alphabet="abz09_@%+=~-", min_size=1, max_size=5), min_size=2, max_size=4),
    st.sampled_from(["", "'", " ", "(", ":", '"']),
)
def test_no_folder_of_any_spelling_is_told(name: str, folders: list[str], before: str) -> None:
    path = "/" + "/".join(folders)
    assert engine_errors.plain(f"x{before} {path}/{name} y") == f"x{before} {name} y"


@pytest.mark.parametrize(
    "unit",
    [
        "-", "a", "/", "a/", "a-", "~%", "A", "A(", "A{a", "http://", "'", "Caused by ", "\n",
        "Arrow error: ", "Generic ", "x=", "file://", "s3://", "Utf8", "List(", "Struct([",
        "Cast error: Cannot cast string '", "No field named ", "Dictionary(Int32, ",
    ],
)  # fmt: skip
def test_a_long_value_in_an_error_is_left_out(unit: str) -> None:
    # It takes milliseconds; what grows with the square of the length does not end here.
    value = (unit * 1_000_000)[:1_000_000]
    told = engine_errors.read(
        f"Arrow error: Cast error: Cannot cast string '{value}' to value of Int64 type"
    )
    assert told.fault is STATEMENT
    assert len(told.message) < 30_000


@given(st.text(max_size=300))
def test_any_text_has_a_fault_and_a_message(text: str) -> None:
    told = engine_errors.read(text)
    assert told.message == told.message.strip()
    again = engine_errors.plain(told.message)
    assert len(again) <= len(told.message) + 50
