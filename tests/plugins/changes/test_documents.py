import random
from dataclasses import replace

import orjson
import pyarrow as pa
import pytest

from caraway_core.json_texts import strict_json
from caraway_plugins.changes import documents
from caraway_plugins.changes.target import BadChangesError
from tests.plugins.changes.events import ORDERS, decode, event, told

A, B = {"n": 1}, {"n": 2}
SCHEMA = {"type": "struct", "name": 'says ,"payload":'}


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b'{"n":1}', [A]),
        (b'\xef\xbb\xbf {"n":1} ', [A]),
        (b'{\n "n":\n 1\n}', [A]),
        (b'[{"n":1},{"n":2}]', [A, B]),
        (b'[\n{"n":1},\n{"n":2}\n]', [A, B]),
        (b'{"n":1}\n{"n":2}\n', [A, B]),
        (b'{"n":1}\r\n\r\n{"n":2}', [A, B]),
        (b'null\n{"n":2}\nnull', [None, B, None]),
        (b"null", [None]),
        (b"[]", []),
    ],
)
def test_forms_of_a_body(body: bytes, events: list[object]) -> None:
    assert documents.events(body) == events
    assert documents.events(body, is_exact=True) == events


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"{", "not JSON"),
        (b'{"n":1}{"n":2}', "not JSON"),
        (b'{"n":1}\n{"n":', "line 2 is not JSON"),
        (b'{"n":1}\n\n{"n":NaN}', "line 3 is not JSON"),
        (b'{"n":1}\n' + b"[" * 100_000, "line 2 is not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
)
@pytest.mark.parametrize("is_exact", [False, True])
def test_what_is_not_json_is_told(body: bytes, says: str, is_exact: bool) -> None:
    with pytest.raises(BadChangesError, match=says):
        documents.events(body, is_exact)


@pytest.mark.parametrize("tail", ["}", "}}", ',"payload":5}', ',"schema":6}', " } ", "", ",}", "]"])
@pytest.mark.parametrize(
    "payload", ['{"op":",\\"payload\\":"}', "null", "5", '{"a":{"payload":1}}']
)
def test_line_with_the_schema_of_the_first_is_read_as_if_alone(payload: str, tail: str) -> None:
    start = f'{{"schema":{orjson.dumps(SCHEMA).decode()},"payload":'
    first, line = (start + '{"op":"c"}}').encode(), (start + payload + tail).encode()
    try:
        alone = strict_json.parse(line)
    except ValueError:
        with pytest.raises(BadChangesError, match="line 2"):
            documents.events(first + b"\n" + line)
        return

    assert documents.events(first + b"\n" + line)[1] == alone


def test_decimals_keep_all_digits_that_are_written() -> None:
    body = (
        b'{"op":"c","after":{"id":1,"price":12345678.90,"name":{"x":0.1}}}\n'
        b'{"op":"c","after":{"id":2,"price":0.30000000000000000,"name":"b"}}'
    )

    rows = [row for _, row in told(decode(body))]

    assert [str(row["price"]) for row in rows] == ["12345678.90", "0.30"]
    assert [row["name"] for row in rows] == ['{"x":0.1}', "b"]


def test_document_in_a_text_keeps_the_digits_of_its_decimals_too() -> None:
    body = rb'{"op":"c","after":"{\"id\":1,\"price\":0.50000000000000000}"}'
    body += rb"""
{"op":"c","after":{"id":2,"price":12345678.9000000000000}}"""

    assert [str(row["price"]) for _, row in told(decode(body))] == ["0.50", "12345678.90"]


def test_long_whole_numbers_are_not_rounded() -> None:
    wide = replace(ORDERS, schema=pa.schema([("id", pa.decimal128(38, 0))]))

    rows = told(decode(b'{"op":"c","after":{"id":123456789012345678901234567890}}', wide))

    assert str(rows[0][1]["id"]) == "123456789012345678901234567890"


def test_forms_give_the_same_changes() -> None:
    chance = random.Random(5)
    events = [
        event(chance.choice("cu"), {"id": chance.randrange(9), "name": str(n)}) for n in range(50)
    ]
    lines = b"\n".join(map(orjson.dumps, events))

    assert decode(lines).rows == decode(events).rows


@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":2}',
        b'{"a": 1, "a" : 2}',
        b'{"op":"c","after":{"id":1,"name":"x","id":2}}',
        # Strings that look like keys do not hide a missing key.
        b'{"a":1,"a":2,"b":"\\u0022:"}',
        b'{"a":1,"a":2,"b":"\\"\\u003A"}',
        b'{"a" :1,"a":"\\":"}',
        b'{"a":1e400}',
        b'{"a":-1e999,"b":"null"}',
        b'{"b":"\\u006eull","a":1e400}',
        b'{"a":NaN}',
        b"[" * 100_000,
    ],
)
def test_equal_keys_and_numbers_out_of_range_are_refused(body: bytes, is_exact: bool) -> None:
    for text in (body, b'{"id":7}\n' + body):
        with pytest.raises(BadChangesError):
            documents.events(text, is_exact)


@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        b'{"a":"\\":","b":"null","c":null}',
        b'{"a" : {"b" : 1}, "c" : "\\u0022:"}',
        b'[{"a":1},{"a":1}]',
        b'{"a":"\\u006eull"}',
        b'{"a":1e308,"b":123456789012345678901234567890}',
    ],
)
def test_texts_that_look_like_keys_are_no_keys(body: bytes, is_exact: bool) -> None:
    assert documents.events(body, is_exact)
