import json

import pytest

from caraway.rows.formats import Format
from caraway.shell.answers import PRESENTATIONS

TABLE = b"+---+---+\n| a | b |\n+---+---+\n| 1 | + |\n| 2 | | |\n+---+---+\n"
EMPTY_TABLE = b"+---+\n| a |\n+---+\n+---+\n"
CSV = b'a,b\n1,"x\ny"\n2,"say ""hi"",\n"\n'
LINES = b'{"a":1}\n{"a":2}\n'

CASES = [
    (Format.TABLE, TABLE, 2),
    (Format.TABLE, EMPTY_TABLE, 0),
    (Format.TABLE, b"", 0),
    (Format.CSV, CSV, 2),
    (Format.CSV, CSV.rstrip(), 2),
    (Format.CSV, b"a,b\n", 0),
    (Format.CSV, b"", 0),
    (Format.NDJSON, LINES, 2),
    (Format.NDJSON, LINES.rstrip(), 2),
    (Format.NDJSON, b"", 0),
]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("format", "answer", "rows"), CASES)
def test_rows_are_counted_whatever_the_chunk_size(
    format: Format, answer: bytes, rows: int, size: int
) -> None:
    view = PRESENTATIONS[format].view()
    chunks = [answer[start : start + size] for start in range(0, len(answer), size)]

    shown = b"".join(view.show(chunks))

    assert (shown, view.rows) == (answer, rows)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("rows", [[], [{"a": 1}], [{"a": "]\n"}, {"a": None}]])
def test_lines_become_a_json_array(rows: list[object], size: int) -> None:
    view = PRESENTATIONS[Format.JSON].view()
    answer = "".join(json.dumps(row) + "\n" for row in rows).encode()
    chunks = [answer[start : start + size] for start in range(0, len(answer), size)]

    shown = b"".join(view.show(chunks))

    assert (json.loads(shown), view.rows) == (rows, len(rows))
