import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from caraway_plugins.sources.documents import json_texts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ('"a', '"a'),
        (True, "true"),
        (2**70, str(2**70)),
        (Decimal("0.10000000000000000001"), "0.10000000000000000001"),
        (Decimal("1E+3"), "1E+3"),
        (1.5, "1.5"),
        (math.nan, '"nan"'),
        (b"\xff", '"/w=="'),
        (datetime(2024, 1, 1, tzinfo=UTC), '"2024-01-01T00:00:00+00:00"'),
        (["ä", None, {'a"': False}], '["ä", null, {"a\\"": false}]'),
        ([], "[]"),
    ],
)
def test_texts(value: Any, text: str | None) -> None:
    assert json_texts.text_of(value) == text
    if value is not None and not isinstance(value, str):
        json.loads(str(text))
